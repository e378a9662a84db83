// Checks the file as SQLite sees it, and its schema.
#include "database/checksum.hpp"
#include "database/sqlite/failure.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/objects.hpp"
#include "sqlite/schema.hpp"
#include "sqlite_sql/inspection.hpp"
#include "sqlite_sql/participants.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace stela::sqlite {
namespace {

// For the table ?1, or for the entire file if it is NULL.
constexpr std::string_view quick_check_sql = "SELECT * FROM pragma_quick_check(?1)";
constexpr std::string_view integrity_check_sql = "SELECT * FROM pragma_integrity_check(?1)";
constexpr std::string_view foreign_key_check_sql = "SELECT * FROM pragma_foreign_key_check(?1)";

constexpr std::string_view tables_sql =
    "SELECT 'sqlite_schema' UNION ALL SELECT name FROM sqlite_schema WHERE type = 'table'";

constexpr std::string_view hand_advice =
    "it was changed by hand: restore a backup, or recreate it as in docs/schema.md";

std::string in_one_line(std::string_view text) {
  std::string line{text};
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// The mode in the file's header: a connection that reads the file without a log reports none. Read
/// through SQLite's own descriptor, because closing another one would end all locks of the process.
bool says_log(Connection& connection) {
  constexpr sqlite3_int64 write_version = 18;
  constexpr char of_log = 2;
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  char found = 0;
  return file != nullptr && file->pMethods != nullptr &&
         file->pMethods->xRead(file, &found, 1, write_version) == SQLITE_OK && found == of_log;
}

/// A trigger or an index holds no data, so it can be created again.
std::string advice_for(const std::string& name, const Object& object, bool is_there) {
  const bool holds_nothing = object.type == "trigger" || object.type == "index";
  if (!holds_nothing || object.sql.empty()) return std::string{hand_advice};
  std::string advice = "it was changed by hand: put it back by ";
  if (is_there)
    advice += (object.type == "trigger" ? "DROP TRIGGER " : "DROP INDEX ") + name + "; ";
  return advice + object.sql;
}

/// The migrations that the database's ledger records: verify opens only the event store, and
/// another module's tables may wait for the application to migrate them.
std::span<const database::Migration> applied_to(Connection& connection, std::string_view module,
                                                std::span<const database::Migration> migrations) {
  const std::size_t noted = noted_migrations(connection, module).size();
  return noted == 0 || noted > migrations.size() ? migrations : migrations.first(noted);
}

void check_ledger(FileInspection& inspection, Connection& connection, std::string_view module,
                  std::span<const database::Migration> migrations) {
  std::size_t found = 0;
  for (const NotedMigration& noted : noted_migrations(connection, module)) {
    const bool is_known = found < migrations.size() && noted.number == migrations[found].number &&
                          noted.name == migrations[found].name &&
                          noted.checksum == checksum_of(migrations[found]);
    if (!is_known) {
      inspection.report("the migration ledger",
                        "migration " + std::to_string(noted.number) + " of '" +
                            std::string{module} + "' isn't one that this Stela knows",
                        std::string{hand_advice});
    }
    ++found;
  }
  if (found < migrations.size()) {
    inspection.report(
        "the migration ledger",
        "migration " + std::to_string(found + 1) + " of '" + std::string{module} + "' isn't noted",
        std::string{hand_advice});
  }
}

void check_facts_in(FileInspection& inspection, Connection& connection) {
  std::map<std::string, std::string> facts;
  auto rows = connection.rows(sql::facts{});
  while (rows.step()) {
    const std::string_view name = rows.name();
    const std::string_view value = rows.value();
    if (rows.checksum() != database::checksum_of({}, {name, value})) {
      inspection.report("fact '" + std::string{name} + "'", "it doesn't match its checksum",
                        "restore a backup");
    }
    facts.emplace(name, value);
  }
  for (const char* const name : {"store_id", "codec", "durability"}) {
    if (facts.contains(name)) continue;
    inspection.report(std::string{"fact '"} + name + "'", "it's gone", "restore a backup");
  }
}

void check_participants_in(FileInspection& inspection, Connection& connection) {
  auto rows = connection.rows(sql::inspect_participants{});
  while (rows.step()) {
    const std::int64_t registered_at = rows.registered_at().time_since_epoch().count();
    if (rows.checksum() == database::checksum_of({registered_at}, {rows.name(), rows.detail()}))
      continue;
    inspection.report("participant '" + std::string{rows.name()} + "'",
                      "it doesn't match its checksum",
                      "forget it and attach it again, or restore a backup");
  }
}

/// One of SQLite's own checks, of a table; of the entire file if it is empty.
using FileCheck = std::vector<Problem> (*)(const FileInspection&, Connection&,
                                           std::string_view table);

/// Binds NULL for the entire file.
void bind_table(Query& query, std::string_view table) {
  table.empty() ? query.bind(1, nullptr) : query.bind(1, table);
}

std::vector<Problem> find_damage(const FileInspection& inspection, Connection& connection,
                                 std::string_view table) {
  std::vector<Problem> found;
  Query query =
      connection.query(inspection.options().thorough ? integrity_check_sql : quick_check_sql);
  bind_table(query, table);
  while (query.step()) {
    if (query.text(0) == "ok") continue;
    found.push_back({.check = {},
                     .where = "the file",
                     .what = in_one_line(query.text(0)),
                     .advice = std::string{advice_on_damage(connection.handle())}});
  }
  return found;
}

std::vector<Problem> find_broken_references(const FileInspection& inspection,
                                            Connection& connection, std::string_view table) {
  std::vector<Problem> found;
  Query query = connection.query(foreign_key_check_sql);
  bind_table(query, table);
  while (std::ssize(found) < inspection.options().max_problems && query.step()) {
    found.push_back(
        {.check = {},
         .where = "table " + std::string{query.text(0)} + ", row " + std::string{query.text(1)},
         .what = "it refers to a missing row of " + std::string{query.text(2)},
         .advice = "mend the row, or restore a backup"});
  }
  return found;
}

/// Runs `check` and reports its problems. If it can't run for a reason other than damage, returns
/// that reason.
std::optional<std::string> try_check(FileInspection& inspection, Connection& connection,
                                     FileCheck check, std::string_view table) {
  std::vector<Problem> found;
  try {
    found = check(inspection, connection, table);
  } catch (const StoreFailed&) {
    if (is_store_failure(sqlite3_errcode(connection.handle()))) throw;
    return sqlite3_errmsg(connection.handle());
  }
  for (Problem& problem : found) {
    inspection.report(std::move(problem.where), std::move(problem.what), std::move(problem.advice));
  }
  return std::nullopt;
}

std::vector<std::string> names_of_tables(Connection& connection) {
  std::vector<std::string> names;
  Query query = connection.query(tables_sql);
  while (query.step()) names.emplace_back(query.text(0));
  return names;
}

/// The application may share this file; its indexes and constraints may need functions and
/// collations that only it registers. Then SQLite's check of the file fails, and each table is
/// checked alone. Returns why the check of the file failed, if it did.
std::optional<std::string> look_at_file(FileInspection& inspection, FileCheck check) {
  std::optional<std::string> lack;
  std::vector<std::string> tables;
  inspection.query([&](Connection& connection) {
    lack = try_check(inspection, connection, check, {});
    if (lack) tables = names_of_tables(connection);
  });
  for (const std::string& table : tables) {
    inspection.query([&](Connection& connection) {
      if (auto why = try_check(inspection, connection, check, table)) {
        inspection.leave_unchecked(table, std::move(*why));
      }
    });
  }
  return lack;
}

}  // namespace

void check_file(FileInspection& inspection) {
  inspection.progress(0, 2);
  if (auto lack = look_at_file(inspection, find_damage)) {
    // The check of one table sees neither free pages nor pages shared with another table.
    inspection.leave_unchecked("(free and shared pages)", std::move(*lack));
  }
  inspection.progress(1, 2);
  look_at_file(inspection, find_broken_references);
  inspection.progress(2, 2);
}

void check_header(FileInspection& inspection) {
  inspection.query([&](Connection& connection) {
    if (connection.integer("PRAGMA application_id") != application_id) {
      inspection.report("the file's header", "the application id was changed",
                        application_id_advice());
    }
    if (!sqlite::path(inspection.store()).empty() && !says_log(connection)) {
      inspection.report("the file's header", "it has no write-ahead log any more",
                        "close every program that uses it, and open it with Stela again");
    }
  });
}

void FileInspection::check_schema(std::string_view module,
                                  std::span<const database::Migration> migrations,
                                  std::span<const database::Migration>) {
  query([&](Connection& connection) { migrations = applied_to(connection, module, migrations); });
  const Objects expected = objects_made_by(module, migrations);
  query([&](Connection& connection) {
    const Objects actual = objects_of(connection);
    for (const auto& [name, object] : expected) {
      const auto found = actual.find(name);
      const std::string where = object.type + ' ' + name;
      if (found == actual.end()) {
        report(where, "it's gone", advice_for(name, object, false));
      } else if (found->second != object) {
        report(where, "it isn't as Stela made it", advice_for(name, object, true));
      }
    }
  });
  query([&](Connection& connection) { check_ledger(*this, connection, module, migrations); });
}

void check_facts(FileInspection& inspection) {
  inspection.query([&](Connection& connection) { check_facts_in(inspection, connection); });
  inspection.query([&](Connection& connection) { check_participants_in(inspection, connection); });
}

}  // namespace stela::sqlite
