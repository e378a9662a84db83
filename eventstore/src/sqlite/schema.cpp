#include "sqlite/schema.hpp"

#include "database/checksum.hpp"
#include "sqlite/objects.hpp"
#include "sqlite_sql.hpp"
#include "sqlite_sql/participants.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace stela::sqlite {
namespace {

// No migration creates the ledger, so its statements can't be checked against the migrations'
// tables during the build.
constexpr std::string_view ledger_sql =
    "CREATE TABLE stela_migrations (\n"
    "  module     TEXT NOT NULL,\n"
    "  number     INTEGER NOT NULL,\n"
    "  name       TEXT NOT NULL,\n"
    "  checksum   TEXT NOT NULL,\n"
    "  applied_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (module, number)\n"
    ") STRICT, WITHOUT ROWID";
constexpr std::string_view noted_sql =
    "SELECT number, name, checksum FROM stela_migrations WHERE module = ?1 ORDER BY number";
constexpr std::string_view note_sql =
    "INSERT INTO stela_migrations (module, number, name, checksum, applied_at) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";

/// Runs `work` in a transaction of its own.
template <class Work>
void in_transaction(Connection& connection, Work&& work) {
  connection.execute("BEGIN IMMEDIATE");
  try {
    work();
    connection.execute("COMMIT");
  } catch (...) {
    connection.roll_back();
    throw;
  }
}

/// A read transaction: all reads in it see one moment.
class ReadTransaction {
 public:
  explicit ReadTransaction(Connection& connection) : connection_{connection} {
    connection_.execute("BEGIN");
  }
  ~ReadTransaction() { connection_.roll_back(); }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  Connection& connection_;
};

constexpr std::string_view shut_out_line = "-- Shuts out older writers.\n";
constexpr std::string_view requirement_detail = "a newer Stela; restart this process with it";

bool has_ledger(Connection& connection) {
  return connection.integer("SELECT 1 FROM sqlite_schema WHERE name = 'stela_migrations'")
      .has_value();
}

/// How many of these migrations the database already has.
std::size_t count_applied(Connection& connection, std::string_view module,
                          std::span<const database::Migration> migrations) {
  std::size_t applied = 0;
  for (const NotedMigration& noted : noted_migrations(connection, module)) {
    if (applied == migrations.size()) {
      throw SchemaMismatch{"the tables of '" + std::string{module} +
                           "' are of a newer Stela (migration " + std::to_string(noted.number) +
                           ", '" + noted.name + "'; this one knows " + std::to_string(applied) +
                           "); use that one, this one leaves the database as it is"};
    }
    const database::Migration& expected = migrations[applied];
    if (noted.number != expected.number || noted.checksum != checksum_of(expected)) {
      throw SchemaMismatch{
          "migration " + std::to_string(noted.number) + " of '" + std::string{module} + "', '" +
          noted.name +
          "', isn't the one that this Stela has under that number; the database "
          "is left as it is; if it is damaged, restore a backup; if it is of a version that wasn't "
          "released, export it whole with that one, and import that into a new database"};
    }
    ++applied;
  }
  return applied;
}

/// SchemaMismatch if the application has names that the migrations after the first `applied` need.
void refuse_taken_names(Connection& connection, std::string_view module,
                        std::span<const database::Migration> migrations, std::size_t applied) {
  std::string names;
  for (const std::string& name : taken_names(connection, module, migrations, applied)) {
    names += (names.empty() ? "'" : ", '") + name + '\'';
  }
  if (names.empty()) return;
  throw SchemaMismatch{
      "the application's database has something by the names that the tables of '" +
      std::string{module} + "' need: " + names +
      "; rename that, or give Stela a file of its own; nothing was changed" +
      // Only Stela creates a ledger: here its rows are missing.
      (names.find("'stela_migrations'") == std::string::npos
           ? ""
           : "; if it is Stela's own file, its ledger is damaged: restore a backup")};
}

Codec parse_codec(std::string_view text) {
  if (text == to_string(Codec::json)) return Codec::json;
  if (text == to_string(Codec::portable_binary)) return Codec::portable_binary;
  throw SchemaMismatch{"the database has the codec '" + std::string{text} +
                       "', which this Stela doesn't know"};
}

Durability parse_durability(std::string_view text) {
  if (text == to_string(Durability::full)) return Durability::full;
  if (text == to_string(Durability::relaxed)) return Durability::relaxed;
  throw SchemaMismatch{"the database has the durability '" + std::string{text} +
                       "', which this Stela doesn't know"};
}

template <class T>
void check_fact(std::string_view name, const std::optional<T>& wanted, T actual) {
  if (!wanted || *wanted == actual) return;
  throw UsageError{"this database was made with " + std::string{name} + " '" +
                   std::string{to_string(actual)} + "', and '" + std::string{to_string(*wanted)} +
                   "' was asked for; leave the option out to take what the database has"};
}

}  // namespace

bool shuts_out_older_writers(const database::Migration& migration) noexcept {
  return migration.text.starts_with(shut_out_line);
}

std::vector<NotedMigration> noted_migrations(Connection& connection, std::string_view module) {
  std::vector<NotedMigration> noted;
  Query query = connection.query(noted_sql);
  query.bind(1, module);
  while (query.step()) {
    noted.push_back({query.integer(0), std::string{query.text(1)}, std::string{query.text(2)}});
  }
  return noted;
}

std::string checksum_of(const database::Migration& migration) {
  std::string hex;
  const std::uint64_t hash = database::text_checksum(migration.text);
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[hash >> shift & 15];
  return hex;
}

namespace {

/// SchemaMismatch if text is stored as UTF-16, which sorts differently.
void refuse_utf16(Connection& connection, const std::string& path) {
  if (connection.integer("SELECT encoding = 'UTF-8' FROM pragma_encoding").value_or(0) == 1) return;
  throw SchemaMismatch{"'" + path +
                       "' stores text as UTF-16, and Stela needs UTF-8; load a dump of it into a "
                       "new file (sqlite3 OLD .dump | sqlite3 NEW), and open that; it is left as "
                       "it is"};
}

bool has_tables_of_stela(Connection& connection) {
  return connection.integer(
             "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND "
             "name IN ('stela_migrations', 'stela_facts')") == 2;
}

}  // namespace

std::string application_id_advice() {
  return "put it back by PRAGMA application_id = " + std::to_string(application_id);
}

void recognise(Connection& connection, const std::string& path, const Options& options) {
  // Another process may be creating the database right now.
  const ReadTransaction transaction{connection};
  const std::int64_t tables = connection.integer("SELECT count(*) FROM sqlite_schema").value_or(0);
  const std::int64_t id = connection.integer("PRAGMA application_id").value_or(0);
  if (id == application_id) return;
  if (has_tables_of_stela(connection)) {
    throw SchemaMismatch{"'" + path + "' has Stela's tables, and another application id, " +
                         std::to_string(id) + "; " + application_id_advice() + ", and leave it so"};
  }
  if (id == 0 && tables == 0 && !options.create) {
    throw SchemaMismatch{"'" + path + "' is empty: no database has been made in it yet"};
  }
  if (id == 0 && tables == 0) return refuse_utf16(connection, path);
  if (id == 0 && options.share_file) {
    refuse_utf16(connection, path);
    return refuse_taken_names(connection, "eventstore", sql::migrations, 0);
  }
  throw SchemaMismatch{
      "'" + path + "' is a database of another application (application id " + std::to_string(id) +
      ", " + std::to_string(tables) + " tables and indexes); it is left as it is" +
      (id == 0 ? "; to keep Stela's tables beside the application's, open it with share_file"
               : "")};
}

void insert_participant(Connection& connection, std::string_view name, std::string_view detail,
                        Timestamp now) {
  connection.run(sql::insert_participant{
      .name = name,
      .detail = detail,
      .registered_at = now,
      .checksum = database::checksum_of({now.time_since_epoch().count()}, {name, detail})});
}

namespace {

void make_ledger(Connection& connection) {
  connection.execute(std::string{ledger_sql});
  connection.execute("PRAGMA application_id = " + std::to_string(application_id));
}

void apply(Connection& connection, std::string_view module, const database::Migration& migration,
           Timestamp now) {
  connection.execute(std::string{migration.text});
  connection.query(note_sql)
      .bind(1, module)
      .bind(2, std::int64_t{migration.number})
      .bind(3, migration.name)
      .bind(4, checksum_of(migration))
      .bind(5, now.time_since_epoch().count())
      .run();
}

}  // namespace

void migrate(Connection& connection, std::string_view module,
             std::span<const database::Migration> migrations, Timestamp now) {
  const bool is_new = !has_ledger(connection);
  const std::size_t applied = is_new ? 0 : count_applied(connection, module, migrations);
  if (applied == migrations.size()) return;
  try {
    in_transaction(connection, [&] {
      if (is_new) make_ledger(connection);
      for (const database::Migration& migration : migrations.subspan(applied)) {
        apply(connection, module, migration, now);
        // Older processes haven't written to tables that are only now created.
        if (applied > 0 && shuts_out_older_writers(migration)) {
          const SchemaRequirement required{module, migration.number};
          insert_participant(connection, required.participant(), requirement_detail, now);
        }
      }
    });
  } catch (const StoreFailed&) {
    refuse_taken_names(connection, module, migrations, applied);
    throw;
  }
}

bool is_migrated(Connection& connection, std::string_view module,
                 std::span<const database::Migration> migrations) {
  return has_ledger(connection) &&
         count_applied(connection, module, migrations) == migrations.size();
}

void check_migrated(Connection& connection, std::string_view module,
                    std::span<const database::Migration> migrations) {
  if (is_migrated(connection, module, migrations)) return;
  throw SchemaMismatch{
      "the tables of '" + std::string{module} +
      "' are missing or are of an older Stela, and a store that was opened "
      "read-only can't create them; open it once for writing, or read a copy that was"};
}

void refuse_older(Connection& connection, std::string_view module,
                  std::span<const database::Migration> migrations) {
  if (!has_ledger(connection)) return;
  const std::size_t applied = count_applied(connection, module, migrations);
  if (applied > 0 && applied < migrations.size()) database::refuse_older(module);
}

std::optional<Facts> find_facts(Connection& connection) {
  Facts facts;
  bool found = false;
  auto rows = connection.rows(sql::facts{});
  while (rows.step()) {
    const std::string_view name = rows.name();
    const std::string_view value = rows.value();
    if (rows.checksum() != database::checksum_of({}, {name, value})) {
      throw SchemaMismatch{"the fact '" + std::string{name} +
                           "' of this database doesn't match its checksum: it is damaged or was "
                           "changed by hand; restore a backup"};
    }
    if (name == "store_id") {
      const auto id = Uuid::parse(value);
      if (!id) throw SchemaMismatch{"the database's store id isn't a UUID"};
      facts.store_id = *id;
      found = true;
    }
    if (name == "codec") facts.codec = parse_codec(value);
    if (name == "durability") facts.durability = parse_durability(value);
  }
  return found ? std::optional{facts} : std::nullopt;
}

namespace {

Facts set_facts(Connection& connection, const Options& options) {
  const Facts facts{.store_id = make_uuid(),
                    .codec = options.codec.value_or(Codec::json),
                    .durability = options.durability.value_or(Durability::full)};
  in_transaction(connection, [&] {
    const auto set = [&](std::string_view name, std::string_view value) {
      connection.run(sql::insert_fact{
          .name = name, .value = value, .checksum = database::checksum_of({}, {name, value})});
    };
    set("store_id", facts.store_id.to_string());
    set("codec", to_string(facts.codec));
    set("durability", to_string(facts.durability));
  });
  return facts;
}

}  // namespace

Facts settle_facts(Connection& connection, const Options& options) {
  const auto found = find_facts(connection);
  // They are set before the first append.
  if (!found && connection.integer("SELECT 1 FROM events LIMIT 1")) {
    throw SchemaMismatch{
        "the facts of this database are missing: it is damaged or was changed by hand; restore a "
        "backup"};
  }
  const Facts facts = found ? *found : set_facts(connection, options);
  check_fact("codec", options.codec, facts.codec);
  check_fact("durability", options.durability, facts.durability);
  return facts;
}

}  // namespace stela::sqlite
