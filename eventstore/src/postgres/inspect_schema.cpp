// Schema checks, which compare the objects that migrations create with the existing ones.
#include "database/postgres/sql_text.hpp"
#include "postgres/inspection.hpp"
#include "postgres/schema.hpp"
#include "postgres_sql.hpp"
#include "postgres_sql/inspection.hpp"
#include "postgres_sql/schema.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace stela::postgres {
namespace {

constexpr std::string_view hand_advice =
    "it was changed by hand: restore a backup, or recreate it as in docs/schema-postgresql.md";

/// True if the role lacks the right, or the server is read-only.
bool lacks_rights(std::string_view error) {
  return error.find("SQLSTATE 42501") != std::string_view::npos ||
         error.find("SQLSTATE 25006") != std::string_view::npos;
}

/// Definitions by the object's kind and name.
using Objects = std::map<std::string, std::string>;

Objects objects_of(Connection& connection, const std::string& schema) {
  auto rows = connection.rows(sql::objects{.schema = schema});
  Objects objects;
  while (rows.step()) objects.emplace(rows.name(), rows.definition());
  return objects;
}

void apply_all(Connection& connection, std::span<const database::Migration> migrations) {
  for (const database::Migration& migration : migrations) {
    connection.execute(std::string{migration.text});
  }
  connection.execute("SELECT stela.guard_tables()");
}

/// The objects that a module's migrations add to an event store. Applies them to a schema of
/// another name, in a transaction that it rolls back.
Objects objects_made_by(ConnectionOptions options, std::string_view module,
                        std::span<const database::Migration> migrations) {
  std::string name = "stela_verify_" + make_uuid().to_string();
  std::erase(name, '-');
  options.schema = name;
  Connection connection{options};
  set_up(connection);
  // Read-only if that is the default of the server or the role.
  connection.query("BEGIN ISOLATION LEVEL READ COMMITTED");
  connection.execute("SET LOCAL synchronous_commit = off");
  connection.execute("CREATE SCHEMA " + postgres::quoted(name));
  if (module != "eventstore") apply_all(connection, sql::migrations);
  const Objects before = objects_of(connection, name);
  apply_all(connection, migrations);
  Objects made = objects_of(connection, name);
  connection.roll_back();
  std::erase_if(made, [&](const auto& object) {
    const auto found = before.find(object.first);
    return found != before.end() && found->second == object.second;
  });
  return made;
}

void check_ledger(ServerInspection& inspection, std::string_view module,
                  std::span<const database::Migration> migrations) {
  inspection.query([&](Connection& connection) {
    auto rows = connection.rows(sql::ledger{.module = module});
    std::size_t noted = 0;
    for (; rows.step(); ++noted) {
      const bool is_known = noted < migrations.size() &&
                            rows.number() == migrations[noted].number &&
                            rows.name() == migrations[noted].name &&
                            rows.checksum() == checksum_of(migrations[noted]);
      if (is_known) continue;
      inspection.report("the migration ledger",
                        "migration " + std::to_string(rows.number()) + " of '" +
                            std::string{module} + "' isn't one that this Stela knows",
                        std::string{hand_advice});
    }
    if (noted >= migrations.size()) return;
    inspection.report(
        "the migration ledger",
        "migration " + std::to_string(noted + 1) + " of '" + std::string{module} + "' isn't noted",
        std::string{hand_advice});
  });
}

/// Whether it is an unexpected constraint on an expected table.
bool is_foreign_constraint(const std::string& name, const std::string& definition,
                           const Objects& expected) {
  if (!name.starts_with("constraint ") || expected.contains(name)) return false;
  return expected.contains("table " + definition.substr(0, definition.find(':')));
}

void compare(ServerInspection& inspection, const Objects& expected) {
  inspection.query([&](Connection& connection) {
    const Objects actual = objects_of(connection, inspection.server().schema);
    for (const auto& [name, definition] : expected) {
      const auto found = actual.find(name);
      if (found == actual.end()) {
        inspection.report(name, "it's gone", std::string{hand_advice});
      } else if (found->second != definition) {
        inspection.report(name, "it isn't as Stela made it", std::string{hand_advice});
      }
    }
    for (const auto& [name, definition] : actual) {
      if (!is_foreign_constraint(name, definition, expected)) continue;
      inspection.report(name, "it isn't Stela's, and may refuse what is written",
                        "drop it, and verify again");
    }
  });
}

void check_foreign(ServerInspection& inspection) {
  inspection.query([&](Connection& connection) {
    auto rows = connection.rows(sql::foreign_objects{.schema = inspection.server().schema});
    while (rows.step()) {
      inspection.report(std::string{rows.name()},
                        "it isn't Stela's, and may change what is written or read",
                        "drop it, and verify again");
    }
  });
}

void check_facts(ServerInspection& inspection) {
  inspection.query([&](Connection& connection) {
    for (const char* const name : {"store_id", "codec"}) {
      auto fact = connection.rows(sql::fact{.name = name});
      if (fact.step() && !fact.value().empty()) continue;
      inspection.report(std::string{"fact '"} + name + "'", "it's gone", "restore a backup");
    }
  });
}

}  // namespace

void ServerInspection::check_schema(std::string_view module, std::span<const database::Migration>,
                                    std::span<const database::Migration> on_postgres) {
  check_ledger(*this, module, on_postgres);
  Objects expected;
  try {
    expected = objects_made_by(server(), module, on_postgres);
  } catch (const StoreFailed& e) {
    if (!lacks_rights(e.what())) throw;
    return leave_unchecked("the objects of '" + std::string{module} + "'", e.what());
  }
  compare(*this, expected);
}

void check_own_schema(ServerInspection& inspection) {
  inspection.check_schema("eventstore", {}, sql::migrations);
  check_foreign(inspection);
  check_facts(inspection);
}

namespace {

/// The function of the extension amcheck; empty if it is missing.
std::string find_index_check(ServerInspection& inspection) {
  std::string function;
  inspection.query([&](Connection& connection) {
    auto rows = connection.rows(sql::find_index_check{});
    if (rows.step()) function = rows.function();
  });
  return function;
}

std::vector<std::string> list_indexes(ServerInspection& inspection) {
  std::vector<std::string> indexes;
  inspection.query([&](Connection& connection) {
    auto rows = connection.rows(sql::indexes{.schema = inspection.server().schema});
    while (rows.step()) indexes.emplace_back(rows.index());
  });
  return indexes;
}

}  // namespace

void check_indexes(ServerInspection& inspection) {
  if (!inspection.options().thorough) return;
  const std::string function = find_index_check(inspection);
  if (function.empty()) {
    return inspection.leave_unchecked("the pages of indexes",
                                      "the extension amcheck is missing; CREATE EXTENSION amcheck");
  }
  const std::vector<std::string> indexes = list_indexes(inspection);
  std::int64_t done = 0;
  // A transaction for each index, so that none is long.
  for (const std::string& index : indexes) {
    const auto error = inspection.try_read([&](database::Connection& connection) {
      Parameters parameters;
      parameters.add(index);
      connection_of(connection)
          .query("SELECT " + function + "($1::regclass, true)", std::move(parameters),
                 "checking an index");
    });
    if (error && lacks_rights(*error)) {
      return inspection.leave_unchecked("the pages of indexes", *error);
    }
    if (error) {
      inspection.report("index " + index, *error,
                        "the tables are the truth: REINDEX it, verify again, and keep a backup");
    }
    inspection.progress(++done, static_cast<std::int64_t>(indexes.size()));
  }
}

}  // namespace stela::postgres
