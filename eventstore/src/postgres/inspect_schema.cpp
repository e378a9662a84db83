// The checks of the schema: what migrations make, compared with what is there.
#include "database/postgres/sql_text.hpp"
#include "postgres/inspection.hpp"
#include "postgres/schema.hpp"
#include "postgres_sql.hpp"

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

/// Tables with their columns, constraints, indexes, triggers and functions of the schema $1, as
/// text that doesn't name the schema.
constexpr std::string_view objects_sql =
    "WITH here AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1), found AS ("
    "SELECT CASE c.relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || c.relname AS name, "
    "c.relpersistence::text || ': ' || string_agg(concat_ws(' ', a.attname, "
    "format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END, "
    "(SELECT l.collname FROM pg_catalog.pg_collation AS l WHERE l.oid = a.attcollation), "
    "pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum) AS definition "
    "FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid "
    "AND a.attnum > 0 AND NOT a.attisdropped "
    "LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum "
    "WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind IN ('r', 'v') "
    "GROUP BY c.oid, c.relname, c.relkind, c.relpersistence "
    "UNION ALL SELECT 'view ' || c.relname || ', its query', pg_get_viewdef(c.oid) "
    "FROM pg_catalog.pg_class AS c "
    "WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind = 'v' "
    "UNION ALL SELECT 'constraint ' || k.conname, k.conrelid::regclass::text || ': ' || "
    "pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint AS k "
    "WHERE k.connamespace = (SELECT oid FROM here) "
    "UNION ALL SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) || CASE WHEN i.indisvalid "
    "THEN '' ELSE ' (invalid)' END FROM pg_catalog.pg_class AS c "
    "JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid "
    "WHERE c.relnamespace = (SELECT oid FROM here) AND c.relkind = 'i' "
    "UNION ALL SELECT 'trigger ' || t.tgname || ' on ' || c.relname, pg_get_triggerdef(t.oid) || ' "
    "' || t.tgenabled::text "
    "FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid "
    "WHERE c.relnamespace = (SELECT oid FROM here) AND NOT t.tgisinternal "
    "UNION ALL SELECT 'function ' || p.proname, string_agg(pg_get_functiondef(p.oid), ' ' "
    "ORDER BY p.oid) FROM pg_catalog.pg_proc AS p "
    "WHERE p.pronamespace = (SELECT oid FROM here) GROUP BY p.proname) "
    "SELECT name, replace(replace(definition, quote_ident($1) || '.', ''), quote_literal($1), "
    "'''the schema''') FROM found";

/// What somebody else has put on the tables of the schema $1, that changes what is written to them
/// or read from them.
constexpr std::string_view foreign_sql =
    "WITH own AS (SELECT oid, relname, relrowsecurity, relforcerowsecurity "
    "FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p') AND relnamespace = "
    "(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)) "
    "SELECT 'trigger ' || t.tgname || ' on ' || c.relname AS name FROM pg_catalog.pg_trigger AS t "
    "JOIN own AS c ON c.oid = t.tgrelid JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid "
    "JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace "
    "WHERE NOT t.tgisinternal AND n.nspname <> $1 "
    "UNION ALL SELECT 'rule ' || r.rulename || ' on ' || c.relname "
    "FROM pg_catalog.pg_rewrite AS r JOIN own AS c ON c.oid = r.ev_class "
    "UNION ALL SELECT 'row level security of ' || relname FROM own "
    "WHERE relrowsecurity OR relforcerowsecurity "
    "UNION ALL SELECT 'table ' || i.inhrelid::regclass::text || ', which inherits ' || c.relname "
    "FROM pg_catalog.pg_inherits AS i JOIN own AS c ON c.oid = i.inhparent ORDER BY name";

/// A role that may not do it, or a server that only reads.
bool lacks_rights(std::string_view error) {
  return error.find("SQLSTATE 42501") != std::string_view::npos ||
         error.find("SQLSTATE 25006") != std::string_view::npos;
}

/// What each object is, by its kind and name.
using Objects = std::map<std::string, std::string>;

Objects objects_of(Connection& connection, const std::string& schema) {
  Parameters parameters;
  parameters.add(schema);
  const Result rows =
      connection.query(objects_sql, std::move(parameters), "reading the objects of a schema");
  Objects objects;
  for (int row = 0; row < rows.rows(); ++row) {
    objects.emplace(rows.bytes(row, 0), rows.bytes(row, 1));
  }
  return objects;
}

void apply_all(Connection& connection, std::span<const database::Migration> migrations) {
  for (const database::Migration& migration : migrations) {
    connection.execute(std::string{migration.text});
  }
  connection.execute("SELECT stela.guard_tables()");
}

/// What the migrations of a module add to an event store. They are applied to a schema of another
/// name, in a transaction that is rolled back.
Objects objects_made_by(ConnectionOptions options, std::string_view module,
                        std::span<const database::Migration> migrations) {
  std::string name = "stela_verify_" + make_uuid().to_string();
  std::erase(name, '-');
  options.schema = name;
  Connection connection{options};
  set_up(connection);
  // Where transactions only read, by the server's or the role's default, so does this one.
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
    Parameters parameters;
    parameters.add(module);
    const Result rows = connection.query(
        "SELECT number, name, checksum FROM stela.stela_migrations WHERE module = $1 "
        "ORDER BY number",
        std::move(parameters), "reading the ledger of migrations");
    for (int row = 0; row < rows.rows(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      const bool is_known = at < migrations.size() &&
                            rows.integer(row, 0) == migrations[at].number &&
                            rows.bytes(row, 1) == migrations[at].name &&
                            rows.bytes(row, 2) == checksum_of(migrations[at]);
      if (is_known) continue;
      inspection.report("the migration ledger",
                        "migration " + std::to_string(rows.integer(row, 0)) + " of '" +
                            std::string{module} + "' isn't one that this Stela knows",
                        std::string{hand_advice});
    }
    if (static_cast<std::size_t>(rows.rows()) >= migrations.size()) return;
    inspection.report("the migration ledger",
                      "migration " + std::to_string(rows.rows() + 1) + " of '" +
                          std::string{module} + "' isn't noted",
                      std::string{hand_advice});
  });
}

/// A constraint on one of the expected tables that isn't expected.
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
    Parameters parameters;
    parameters.add(inspection.server().schema);
    const Result rows = connection.query(foreign_sql, std::move(parameters),
                                         "looking for what isn't Stela's on its tables");
    for (int row = 0; row < rows.rows(); ++row) {
      inspection.report(std::string{rows.bytes(row, 0)},
                        "it isn't Stela's, and may change what is written or read",
                        "drop it, and verify again");
    }
  });
}

void check_facts(ServerInspection& inspection) {
  inspection.query([&](Connection& connection) {
    for (const char* const name : {"store_id", "codec"}) {
      Parameters parameters;
      parameters.add(name);
      const Result rows = connection.query("SELECT value FROM stela.stela_facts WHERE name = $1",
                                           std::move(parameters), "reading the facts");
      if (rows.rows() > 0 && !rows.bytes(0, 0).empty()) continue;
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

/// The function of the extension amcheck; empty if it isn't there.
std::string find_index_check(ServerInspection& inspection) {
  std::string function;
  inspection.query([&](Connection& connection) {
    const Result rows = connection.query(
        "SELECT quote_ident(n.nspname) || '.bt_index_check' FROM pg_catalog.pg_extension AS e "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'",
        {}, "looking for amcheck");
    if (rows.rows() > 0) function = rows.bytes(0, 0);
  });
  return function;
}

std::vector<std::string> list_indexes(ServerInspection& inspection) {
  std::vector<std::string> indexes;
  inspection.query([&](Connection& connection) {
    Parameters parameters;
    parameters.add(inspection.server().schema);
    const Result rows = connection.query(
        "SELECT c.oid::regclass::text FROM pg_catalog.pg_class AS c "
        "JOIN pg_catalog.pg_am AS a ON a.oid = c.relam AND a.amname = 'btree' "
        "WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1) "
        "AND c.relkind = 'i' AND c.relpersistence = 'p' ORDER BY c.relname",
        std::move(parameters), "listing indexes");
    for (int row = 0; row < rows.rows(); ++row) indexes.emplace_back(rows.bytes(row, 0));
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
  // Each in a transaction of its own, so that none is long.
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
