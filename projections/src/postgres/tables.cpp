#include "postgres/tables.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"
#include "database/postgres/user_values.hpp"
#include "database/reserved_names.hpp"
#include "postgres/read_model.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/server_tables.hpp"

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
  std::vector<std::string> names;
  auto rows = connection.rows(sql::tables_in{.schema = schema});
  while (rows.step()) names.emplace_back(rows.name());
  return names;
}

/// True if the plain name shows a build of this projector; UsageError if it is something else.
bool is_shown_on_server(postgres::Connection& connection, const Build& build,
                        const std::string& name) {
  auto found = connection.rows(sql::note_on{.schema = connection.options().schema, .name = name});
  if (!found.step()) return false;
  if (found.note() == note_of(build)) return true;
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and the database has something else of that name; give the table another"};
}

/// Whether the plain name shows this build.
bool is_own_server_view(postgres::Connection& connection, const std::string& schema,
                        const std::string& name) {
  return connection.run(sql::is_view_of{
             .schema = connection.options().schema, .name = name, .of = schema}) > 0;
}

std::int64_t definitions_in(postgres::Connection& connection, const std::string& schema) {
  auto rows = connection.rows(sql::definitions_in{.schema = schema});
  std::int64_t sum = 0;
  while (rows.step()) {
    sum = database::checksum_of(
        {sum}, {rows.kind(), rows.name(), rows.columns(), rows.triggers(), rows.constraints()});
  }
  return sum;
}

/// Empty if it is this role, or one that it isn't a member of.
std::string owner_of(postgres::Connection& connection, const std::string& schema) {
  auto found =
      connection.rows(sql::owner_of{.store = connection.options().schema, .schema = schema});
  return found.step() ? std::string{found.owner()} : std::string{};
}

/// Runs `work` as `role`, or as the present role if it is empty. An error rolls back the
/// transaction and the role with it.
void act_as(postgres::Connection& connection, const std::string& role, FunctionRef<void()> work) {
  if (role.empty()) return work();
  const std::string before{connection.row(sql::role{}).role()};
  connection.run(sql::set_role{.role = role});
  work();
  connection.run(sql::set_role{.role = before});
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
  auto found = connection.rows(sql::deferred_constraint{.schema = schema});
  if (!found.step()) return;
  throw UsageError{build.describe() + " has a table {" + std::string{found.table_name()} +
                   "} whose constraint '" + std::string{found.name()} +
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
  connection.run(sql::share_view{.name = full_name});
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
  connection.run(sql::guard_read_model{.schema = schema});
  connection.run(sql::share_read_model{.schema = schema});
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
    connection.run(sql::wait_hardly{});
    act_as(connection, owner_of(connection, schema), [&] {
      for (const std::string& name : tables_in(connection, schema)) {
        (void)is_shown_on_server(connection, build, name);
        connection.run(sql::show_read_model{.schema = schema, .name = name, .note = note},
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
    return connection.run(sql::foreign_owner{.schema = schema_of(connection, build)}) == 0;
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
