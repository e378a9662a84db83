// Making, recognising and migrating a database.
#pragma once

#include "database/migration.hpp"
#include "database/sqlite/connection.hpp"
#include "schema_requirement.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/sqlite.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sqlite {

/// "STEL", in the header of every database of Stela's.
inline constexpr std::int64_t application_id = 0x5354454c;
/// To whoever set another one: "put it back by PRAGMA application_id = 1398031692".
std::string application_id_advice();

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
  Durability durability = Durability::full;
};

/// What the ledger says of a migration that the database has had.
struct NotedMigration {
  std::int64_t number;
  std::string name;
  std::string checksum;
};

/// Those of `module`, in their order. The database must have a ledger.
std::vector<NotedMigration> noted_migrations(Connection& connection, std::string_view module);

/// How the ledger knows a migration again: the checksum of its text, in hexadecimal.
std::string checksum_of(const database::Migration& migration);

/// True if processes that know only older migrations must not write any more once it is applied:
/// its text begins with the line "-- Shuts out older writers."
bool shuts_out_older_writers(const database::Migration& migration) noexcept;

/// SchemaMismatch if the file is of another application, and neither new nor to be shared; or to be
/// shared, and the application has the names that the first migrations would take.
void recognise(Connection& connection, const std::string& path, const Options& options);

/// Brings the tables of `module` up to date in one transaction; each migration is noted in a
/// ledger, and one that shuts out older writers registers its requirement. SchemaMismatch if the
/// tables are newer than this code, or were made by other migrations than these, or the application
/// has tables by their names. Under the write lock.
STELA_EVENTSTORE_EXPORT void migrate(Connection& connection, std::string_view module,
                                     std::span<const database::Migration> migrations,
                                     Timestamp now);

/// Whether `migrate` would find nothing to do. SchemaMismatch as there.
bool is_migrated(Connection& connection, std::string_view module,
                 std::span<const database::Migration> migrations);

/// SchemaMismatch if the tables of `module` haven't had the first `least` of these migrations, or
/// had others: for those who can't migrate them.
void check_migrated(Connection& connection, std::string_view module,
                    std::span<const database::Migration> migrations, std::size_t least);

/// Appends require `name` from now on.
void insert_participant(Connection& connection, std::string_view name, std::string_view detail,
                        Timestamp now);

/// Nothing in a new database. SchemaMismatch if they are damaged, or not of this Stela.
std::optional<Facts> find_facts(Connection& connection);
/// Reads the facts, or sets them in a new database; UsageError if `options` asks for others.
Facts settle_facts(Connection& connection, const Options& options);

}  // namespace stela::sqlite
