#include "postgres/tables.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"
#include "database/postgres/user_values.hpp"
#include "database/reserved_names.hpp"
#include "postgres/read_model.hpp"
#include "projections_sql/builds.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace stela::projections {

namespace {

/// A view's comment names its projector.
std::string note_of(const Build& build) {
  return "the read model of projector '" + build.name + '\'';
}

std::vector<std::string> tables_in(postgres::Connection& connection, const std::string& schema) {
  postgres::Parameters parameters;
  parameters.add(schema);
  const postgres::Result rows = connection.query(
      "SELECT c.relname::text FROM pg_catalog.pg_class AS c "
      "WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind IN ('r', 'p') "
      "AND NOT c.relispartition ORDER BY 1",
      std::move(parameters), "listing the tables of a build");
  std::vector<std::string> names;
  for (int row = 0; row < rows.rows(); ++row) names.emplace_back(rows.bytes(row, 0));
  return names;
}

/// True if the plain name shows a build of this projector; UsageError if it is something else.
bool is_shown_on_server(postgres::Connection& connection, const Build& build,
                        const std::string& name) {
  postgres::Parameters parameters;
  parameters.add(connection.options().schema).add(name);
  const postgres::Result found = connection.query(
      "SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_catalog.pg_class AS c "
      "WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relname = $2",
      std::move(parameters), "looking for a view");
  if (found.rows() == 0) return false;
  if (found.bytes(0, 0) == note_of(build)) return true;
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and the database has something else of that name; give the table another"};
}

/// Whether the plain name shows this build.
bool is_own_server_view(postgres::Connection& connection, const std::string& schema,
                        const std::string& name) {
  postgres::Parameters parameters;
  parameters.add(connection.options().schema).add(name).add(schema);
  const postgres::Result found = connection.query(
      "SELECT FROM pg_catalog.pg_class AS v "
      "JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = v.oid "
      "JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid "
      "JOIN pg_catalog.pg_class AS t ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid "
      "WHERE v.relnamespace = to_regnamespace(quote_ident($1)) AND v.relname = $2 "
      "AND v.relkind = 'v' AND t.relnamespace = to_regnamespace(quote_ident($3)) "
      "AND t.relname = $2 LIMIT 1",
      std::move(parameters), "looking at a view");
  return found.rows() > 0;
}

/// A checksum of names and types, which don't change with the server's version, unlike expressions.
std::int64_t definitions_in(postgres::Connection& connection, const std::string& schema) {
  postgres::Parameters parameters;
  parameters.add(schema);
  const postgres::Result rows = connection.query(
      "SELECT c.relkind::text, c.relname::text, "
      "coalesce((SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) "
      "|| CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY a.attnum) "
      "FROM pg_catalog.pg_attribute AS a "
      "WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), ''), "
      "coalesce((SELECT string_agg(t.tgname::text, ', ' ORDER BY t.tgname) "
      "FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal), ''), "
      "coalesce((SELECT string_agg(k.conname || ' ' || k.contype::text, ', ' ORDER BY k.conname) "
      "FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype <> 'n'), '') "
      "FROM pg_catalog.pg_class AS c WHERE c.relnamespace = to_regnamespace(quote_ident($1)) "
      "ORDER BY c.relname, c.relkind",
      std::move(parameters), "reading how tables are defined");
  std::int64_t sum = 0;
  for (int row = 0; row < rows.rows(); ++row) {
    sum = database::checksum_of({sum}, {rows.bytes(row, 0), rows.bytes(row, 1), rows.bytes(row, 2),
                                        rows.bytes(row, 3), rows.bytes(row, 4)});
  }
  return sum;
}

/// The owner of the build's tables, or of Stela's if they don't exist yet. Empty if this role is
/// the owner, or isn't a member of it.
std::string owner_of(postgres::Connection& connection, const std::string& schema) {
  postgres::Parameters parameters;
  parameters.add(connection.options().schema).add(schema);
  const postgres::Result found = connection.query(
      "SELECT r.rolname::text FROM pg_catalog.pg_roles AS r WHERE r.oid = coalesce("
      "(SELECT n.nspowner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $2), "
      "(SELECT c.relowner FROM pg_catalog.pg_class AS c WHERE c.relname = 'projections' "
      "AND c.relnamespace = to_regnamespace(quote_ident($1)))) "
      "AND r.rolname <> current_user AND pg_has_role(r.oid, 'MEMBER')",
      std::move(parameters), "looking for the tables' owner");
  return found.rows() == 0 ? std::string{} : std::string{found.bytes(0, 0)};
}

void set_role(postgres::Connection& connection, const std::string& role) {
  postgres::Parameters parameters;
  parameters.add(role);
  connection.query("SELECT set_config('role', $1, true)", std::move(parameters),
                   "acting as the tables' owner");
}

/// Runs `work` as `role`, or as the present role if it is empty. An error rolls back the
/// transaction and the role with it.
void act_as(postgres::Connection& connection, const std::string& role, FunctionRef<void()> work) {
  if (role.empty()) return work();
  const postgres::Result row = connection.query("SELECT current_setting('role')");
  const std::string before{row.bytes(0, 0)};
  set_role(connection, role);
  work();
  set_role(connection, before);
}

void refuse_server_name(const Build& build, const std::string& name) {
  if (!database::is_reserved_name(name)) return;
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and names that begin in that way are Stela's; give the table another"};
}

/// UsageError if a table's constraint or trigger is deferred to the commit, when nobody can tell
/// which event broke it.
void refuse_deferred(postgres::Connection& connection, const Build& build,
                     const std::string& schema) {
  postgres::Parameters parameters;
  parameters.add(schema);
  const postgres::Result found = connection.query(
      "SELECT t.relname::text, c.conname::text FROM pg_catalog.pg_constraint AS c "
      "JOIN pg_catalog.pg_class AS t ON t.oid = c.conrelid "
      "WHERE t.relnamespace = to_regnamespace(quote_ident($1)) AND c.condeferred "
      "ORDER BY 1, 2 LIMIT 1",
      std::move(parameters), "looking for deferred constraints");
  if (found.rows() == 0) return;
  throw UsageError{build.describe() + " has a table {" + std::string{found.bytes(0, 0)} +
                   "} whose constraint '" + std::string{found.bytes(0, 1)} +
                   "' is left to the commit, where it is too late for the handler that breaks it; "
                   "declare it INITIALLY IMMEDIATE, or leave it out"};
}

/// Gives the table a second name, the one that it would have on SQLite, which `ReadModel::table`
/// returns.
void show_as(postgres::Connection& connection, const std::string& schema, const std::string& name,
             const std::string& full_name) {
  constexpr std::size_t most_bytes_of_name = 63;
  if (full_name.size() > most_bytes_of_name) return;
  connection.query("CREATE VIEW stela." + postgres::quoted(full_name) + " AS SELECT * FROM " +
                       postgres::quoted(schema) + '.' + postgres::quoted(name),
                   {}, "naming a build's table");
  postgres::Parameters parameters;
  parameters.add(full_name);
  connection.query("SELECT stela.share_view($1)", std::move(parameters), "sharing a view");
}

void make_tables(postgres::Connection& connection, const Build& build,
                 detail::AnyProjector& projector, BuildModel& model) {
  const std::string schema = schema_of(connection, build);
  connection.query("CREATE SCHEMA " + postgres::quoted(schema), {}, "making a build's schema");
  model.allow_creation(true);
  model.attempt(connection, [&] { projector.create(model); });
  model.allow_creation(false);
  if (auto failure = model.take_store_failure()) std::rethrow_exception(failure);
  refuse_deferred(connection, build, schema);
  const auto call = [&](std::string_view sql, std::string_view doing) {
    postgres::Parameters parameters;
    parameters.add(schema);
    connection.query(sql, std::move(parameters), doing);
  };
  call("SELECT stela.guard_read_model($1)", "guarding a build's tables");
  call("SELECT stela.share_read_model($1)", "sharing a build's tables");
  for (const std::string& name : tables_in(connection, schema)) {
    refuse_server_name(build, name);
    (void)is_shown_on_server(connection, build, name);
    show_as(connection, schema, name, build.prefix() + name);
  }
}

class PostgresTables final : public Tables {
 public:
  void make(database::Connection& on, const Build& build, detail::AnyProjector& projector,
            BuildModel& model) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    act_as(connection, owner_of(connection, schema_of(connection, build)),
           [&] { make_tables(connection, build, projector, model); });
    on.run(sql::set_definitions{
        .name = build.name,
        .build = build.number,
        .definitions = definitions_in(connection, schema_of(connection, build))});
  }

  std::string find_alteration(database::Connection& on, const Build& build) const override {
    if (build.kind == ProjectionKind::reaction) return {};
    postgres::Connection& connection = postgres::connection_of(on);
    const std::string schema = schema_of(connection, build);
    if (definitions_in(connection, schema) != build.definitions) {
      return "the tables of " + build.describe() + " (in the schema \"" + schema +
             "\") were altered or dropped by hand; rebuild it";
    }
    if (build.state != BuildState::living) return {};
    for (const std::string& name : tables_in(connection, schema)) {
      if (!is_own_server_view(connection, schema, name)) {
        return "the view '" + name + "' of " + build.describe() +
               " was altered or dropped by hand; rebuild it";
      }
    }
    return {};
  }

  void show(database::Connection& on, const Build& build) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    const std::string schema = schema_of(connection, build);
    const std::string note = note_of(build);
    // While this waits for a reader of the view, others wait behind it.
    connection.query("SELECT set_config('lock_timeout', '20ms', true)");
    act_as(connection, owner_of(connection, schema), [&] {
      for (const std::string& name : tables_in(connection, schema)) {
        (void)is_shown_on_server(connection, build, name);
        postgres::Parameters parameters;
        parameters.add(schema).add(name).add(note);
        connection.query("SELECT stela.show_read_model($1, $2, $3)", std::move(parameters),
                         "turning the view '" + name + '\'');
      }
    });
  }

  void hide(database::Connection& on, const Build& build) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    const std::string schema = schema_of(connection, build);
    act_as(connection, owner_of(connection, schema), [&] {
      for (const std::string& name : tables_in(connection, schema)) {
        if (!is_own_server_view(connection, schema, name)) continue;
        connection.query("DROP VIEW stela." + postgres::quoted(name), {}, "dropping a view");
      }
    });
  }

  void drop(database::Connection& on, const Build& build) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    const std::string schema = schema_of(connection, build);
    act_as(connection, owner_of(connection, schema), [&] {
      connection.query("DROP SCHEMA IF EXISTS " + postgres::quoted(schema) + " CASCADE", {},
                       "dropping a build's tables");
    });
  }

  bool may_drop(database::Connection& on, const Build& build) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    postgres::Parameters parameters;
    const std::string schema = schema_of(connection, build);
    parameters.add(schema);
    const postgres::Result found = connection.query(
        "SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1 "
        "AND NOT pg_has_role(n.nspowner, 'MEMBER')",
        std::move(parameters), "looking for the tables' owner");
    return found.rows() == 0;
  }

  void query(database::Connection& on, std::string_view sql, std::span<const SqlValue> values,
             Rows* rows) const override {
    postgres::Connection& connection = postgres::connection_of(on);
    constexpr std::array<std::string_view, 6> reading{"explain", "select", "show",
                                                      "table",   "values", "with"};
    const postgres::UserStatement statement{
        .sql = sql, .text = postgres::with_dollars(sql), .values = values};
    const std::string word = postgres::first_word(sql);
    if (std::find(reading.begin(), reading.end(), word) == reading.end()) {
      statement.refuse("doesn't only read; read models are written by their projectors");
    }
    postgres::check_parameters(sql, values.size());
    set(connection,
        {postgres::quoted(connection.options().schema) + ", " + users_path(connection), "on"});
    postgres::run(connection, statement, rows);
  }
};

}  // namespace

bool is_postgres(const database::Connection& connection) noexcept {
  return dynamic_cast<const postgres::Connection*>(&connection) != nullptr;
}

const Tables& postgres_tables() noexcept {
  static const PostgresTables tables;
  return tables;
}

std::unique_ptr<BuildModel> make_postgres_model(const Build& build) {
  return std::make_unique<PostgresReadModel>(build);
}

}  // namespace stela::projections
