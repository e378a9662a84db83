// Making and migrating the tables of a store on PostgreSQL.
#pragma once

#include "database/migration.hpp"
#include "database/postgres/connection.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/uuid.hpp>

#include <span>
#include <string>
#include <string_view>

namespace stela::postgres {

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
};

struct Module {
  std::string_view name;
  std::span<const database::Migration> migrations;
};

/// How the ledger knows a migration again: the checksum of its text, in hexadecimal.
std::string checksum_of(const database::Migration& migration);

/// Brings the tables of a module up to date. SchemaMismatch if they are newer than this code, or
/// were made by other migrations; StoreBusy if another process migrates for too long.
void migrate(Connection& connection, const Options& options, const Module& module);

/// Brings the tables up to date, and reads the facts of the store or sets them. SchemaMismatch if
/// the tables are newer than this code, or were made by other migrations; UsageError if `options`
/// asks for other facts; StoreBusy if another process migrates for too long.
Facts prepare(Connection& connection, const Options& options);

}  // namespace stela::postgres
