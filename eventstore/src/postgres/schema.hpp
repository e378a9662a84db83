// Creating and migrating the tables of a store on PostgreSQL.
#pragma once

#include "database/migration.hpp"
#include "database/postgres/connection.hpp"
#include "ledger/writer.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
  /// Unset by a Stela that didn't know this fact: treated as empty.
  std::optional<std::string> sql_schema = {};
};

/// The schema for SQL that a new store gets.
std::string sql_schema_of(const Options& options);

struct Module {
  std::string_view name;
  std::span<const database::Migration> migrations;
  /// The module belongs to an event store, whose tables are guarded.
  bool is_of_store = true;
};

/// The ledger's identity of a migration: the checksum of its text, in hexadecimal.
std::string checksum_of(const database::Migration& migration);

using ledger::KnownModules;

/// SchemaMismatch if a newer Stela's migrations forbid this process to write. Modules that it
/// doesn't use don't matter.
void check_writer(Connection& connection, const KnownModules& known);

/// Whether there is nothing to migrate. Throws as `migrate` does.
bool is_migrated(Connection& connection, const Options& options, const Module& module);

/// Brings the tables of a module up to date, and leaves tables of a newer Stela alone.
/// SchemaMismatch if a newer migration shuts this Stela out, or if other migrations made the
/// tables. StoreBusy if another process migrates for too long.
void migrate(Connection& connection, const Options& options, const Module& module);

/// Brings the tables up to date as `migrate` does, and reads the store's facts, or sets them.
/// UsageError if `options` asks for other facts.
Facts prepare(Connection& connection, const Options& options);

}  // namespace stela::postgres
