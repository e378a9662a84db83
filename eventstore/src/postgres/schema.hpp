// Making and migrating the tables of a store on PostgreSQL.
#pragma once

#include "database/migration.hpp"
#include "database/postgres/connection.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
  /// Unset by a Stela that didn't know of it: as if empty.
  std::optional<std::string> sql_schema = {};
};

/// The one that a store is made with.
std::string sql_schema_of(const Options& options);

struct Module {
  std::string_view name;
  std::span<const database::Migration> migrations;
  /// Of a store of events, whose tables are guarded.
  bool is_of_store = true;
};

/// How the ledger knows a migration again: the checksum of its text, in hexadecimal.
std::string checksum_of(const database::Migration& migration);

/// How many migrations of each module this process knows.
using KnownModules = std::map<std::string, std::int64_t, std::less<>>;

/// SchemaMismatch if a newer Stela has migrated the tables so that this process may not write to
/// them any more. Modules that it doesn't use don't matter.
void check_writer(Connection& connection, const KnownModules& known);

/// Whether there is nothing to bring up to date. Throws as `migrate`.
bool is_migrated(Connection& connection, const Options& options, const Module& module);

/// Brings the tables of a module up to date. A newer Stela's tables are left as they are, and will
/// do unless one of its migrations shut out older writers, or readers: SchemaMismatch. So it is if
/// they were made by other migrations; StoreBusy if another process migrates for too long.
void migrate(Connection& connection, const Options& options, const Module& module);

/// Brings the tables up to date as `migrate`, and reads the facts of the store or sets them.
/// UsageError if `options` asks for other facts.
Facts prepare(Connection& connection, const Options& options);

}  // namespace stela::postgres
