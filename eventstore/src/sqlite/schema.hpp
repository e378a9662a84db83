// Creating, recognising and migrating a database.
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

/// "STEL", in the header of every Stela database.
inline constexpr std::int64_t application_id = 0x5354454c;
/// Advice after somebody changed it: "put it back by PRAGMA application_id = 1398031692".
std::string application_id_advice();

struct Facts {
  Uuid store_id = {};
  Codec codec = Codec::json;
  Durability durability = Durability::full;
};

/// The ledger's record of an applied migration.
struct NotedMigration {
  std::int64_t number;
  std::string name;
  std::string checksum;
};

/// The records of `module`, in order. The database must have a ledger.
std::vector<NotedMigration> noted_migrations(Connection& connection, std::string_view module);

/// The ledger's identity of a migration: the checksum of its text, in hexadecimal.
std::string checksum_of(const database::Migration& migration);

/// True if processes that know only older migrations must not write after it was applied: its text
/// begins with the line "-- Shuts out older writers."
bool shuts_out_older_writers(const database::Migration& migration) noexcept;

/// SchemaMismatch if the file belongs to another application, unless it is new or shared. In a
/// shared file, SchemaMismatch if the application has names that the first migrations need.
void recognise(Connection& connection, const std::string& path, const Options& options);

/// Brings the tables of `module` up to date in one transaction. Each migration is recorded in a
/// ledger, and one that shuts out older writers registers its requirement. SchemaMismatch if the
/// tables are newer than this code, or were made by other migrations, or the application has tables
/// with their names. Under the write lock.
STELA_EVENTSTORE_EXPORT void migrate(Connection& connection, std::string_view module,
                                     std::span<const database::Migration> migrations,
                                     Timestamp now);

/// Whether `migrate` has nothing to do. SchemaMismatch as there.
bool is_migrated(Connection& connection, std::string_view module,
                 std::span<const database::Migration> migrations);

/// SchemaMismatch if the tables of `module` haven't had all of these migrations, or had others: for
/// those who can't migrate them.
void check_migrated(Connection& connection, std::string_view module,
                    std::span<const database::Migration> migrations);

/// SchemaMismatch if the tables of `module` are there, but older: for stores that an operator
/// migrates.
void refuse_older(Connection& connection, std::string_view module,
                  std::span<const database::Migration> migrations);

/// Appends require `name` from now on.
void insert_participant(Connection& connection, std::string_view name, std::string_view detail,
                        Timestamp now);

/// Nothing in a new database. SchemaMismatch if the facts are damaged or unknown to this Stela.
std::optional<Facts> find_facts(Connection& connection);
/// Reads the facts, or sets them in a new database; UsageError if `options` asks for other ones.
Facts settle_facts(Connection& connection, const Options& options);

}  // namespace stela::sqlite
