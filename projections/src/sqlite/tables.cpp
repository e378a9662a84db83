#include "sqlite/tables.hpp"

#include "database/checksum.hpp"
#include "database/reserved_names.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/tables.hpp"
#include "sqlite/model_query.hpp"
#include "sqlite/read_model.hpp"

#include <stela/framework/error.hpp>

#include <vector>

namespace stela::projections {

using database::Connection;

namespace {

/// The plain names of the tables of a build.
std::vector<std::string> plain_names(Connection& connection, const Build& build) {
  const std::string prefix = build.prefix();
  std::vector<std::string> names;
  auto rows = connection.rows(sql::tables{.prefix = prefix});
  while (rows.step()) {
    if (rows.type() == "table") names.emplace_back(rows.name().substr(prefix.size()));
  }
  return names;
}

std::string in_quotes(std::string_view name) {
  std::string text = "\"";
  return text.append(name).append("\"");
}

constexpr std::string_view every_column = " AS SELECT *";

std::string plain_view_of(const Build& build, const std::string& name) {
  return "CREATE VIEW " + in_quotes(name) + std::string{every_column} + " FROM " +
         in_quotes(build.prefix() + name);
}

/// The view also shows columns that `*` omits for a virtual table: the rowid, and hidden columns,
/// which serve to search and rank a full-text index. A hidden column with the table's name gets its
/// plain name.
std::string view_of(Connection& connection, const Build& build, const std::string& name) {
  const std::string table = build.prefix() + name;
  std::string hidden;
  auto rows = connection.rows(sql::hidden_columns{.table_name = table});
  while (rows.step()) {
    const std::string column{rows.name()};
    hidden += ", " + in_quotes(column) + " AS " + in_quotes(column == table ? name : column);
  }
  std::string view = plain_view_of(build, name);
  if (hidden.empty()) return view;
  const std::size_t behind_star = view.find(every_column) + every_column.size();
  return view.insert(behind_star, ", rowid AS rowid" + hidden);
}

/// UsageError for a name that SQLite reserves, or that a module of Stela may need now or later.
void refuse_reserved(const Build& build, const std::string& name) {
  const bool is_sqlites = sqlite3_strnicmp(name.c_str(), "sqlite_", 7) == 0;
  if (!is_sqlites && !database::is_reserved_name(name)) return;
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and names that begin in that way are " +
                   (is_sqlites ? "SQLite's" : "Stela's") + "; give the table another"};
}

/// True if the plain name shows a build of this projector; UsageError if it is something else.
bool is_shown(Connection& connection, const Build& build, const std::string& name) {
  auto object = connection.rows(sql::find_object{.name = name});
  if (!object.step()) return false;
  const std::string begin = "CREATE VIEW " + in_quotes(name) + std::string{every_column};
  const std::string from = " FROM \"" + build.name + '@';
  const std::string_view definition = object.definition();
  if (definition.starts_with(begin) && definition.find(from) != std::string_view::npos) {
    return true;
  }
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and the database has something else of that name; give the table another"};
}

/// Whether the plain name shows this build in its original form. Views of earlier versions show no
/// hidden columns.
bool is_own_view(Connection& connection, const Build& build, const std::string& name) {
  auto object = connection.rows(sql::find_object{.name = name});
  return object.step() && (object.definition() == view_of(connection, build, name) ||
                           object.definition() == plain_view_of(build, name));
}

std::int64_t definitions_of(Connection& connection, const Build& build) {
  std::int64_t sum = 0;
  const std::string prefix = build.prefix();
  auto rows = connection.rows(sql::tables{.prefix = prefix});
  while (rows.step()) {
    sum = database::checksum_of({sum}, {rows.type(), rows.name(), rows.definition()});
  }
  return sum;
}

class SqliteTables final : public Tables {
 public:
  void make(Connection& connection, const Build& build, detail::AnyProjector& projector,
            BuildModel& model) const override {
    model.allow_creation(true);
    projector.create(model);
    model.allow_creation(false);
    for (const std::string& name : plain_names(connection, build)) {
      refuse_reserved(build, name);
      (void)is_shown(connection, build, name);
    }
    connection.run(sql::set_definitions{.name = build.name,
                                        .build = build.number,
                                        .definitions = definitions_of(connection, build)});
  }

  std::string find_alteration(Connection& connection, const Build& build) const override {
    if (build.kind == ProjectionKind::reaction) return {};
    if (definitions_of(connection, build) != build.definitions) {
      return "the tables of " + build.describe() + " (\"" + build.prefix() +
             "…\") were altered or dropped by hand; rebuild it";
    }
    if (build.state != BuildState::living) return {};
    for (const std::string& name : plain_names(connection, build)) {
      if (!is_own_view(connection, build, name)) {
        return "the view '" + name + "' of " + build.describe() +
               " was altered or dropped by hand; rebuild it";
      }
    }
    return {};
  }

  void show(Connection& connection, const Build& build) const override {
    for (const std::string& name : plain_names(connection, build)) {
      if (is_shown(connection, build, name)) connection.execute("DROP VIEW " + in_quotes(name));
      connection.execute(view_of(connection, build, name));
    }
  }

  void hide(Connection& connection, const Build& build) const override {
    for (const std::string& name : plain_names(connection, build)) {
      if (is_own_view(connection, build, name)) connection.execute("DROP VIEW " + in_quotes(name));
    }
  }

  void drop(Connection& connection, const Build& build) const override {
    // Tables may refer to each other, as long as no reference is left at the end.
    connection.execute("PRAGMA defer_foreign_keys = ON");
    for (const std::string& name : plain_names(connection, build)) {
      // Dropping a table also drops its shadow tables.
      connection.execute("DROP TABLE IF EXISTS " + in_quotes(build.prefix() + name));
    }
  }

  void query(Connection& connection, std::string_view sql, std::span<const SqlValue> values,
             Rows* rows) const override {
    query_model(connection, sql, values, rows);
  }
};

}  // namespace

const Tables& sqlite_tables() noexcept {
  static const SqliteTables tables;
  return tables;
}

std::unique_ptr<BuildModel> make_sqlite_model(database::Database& database, const Build& build) {
  auto* const driver = dynamic_cast<sqlite::Driver*>(&database);
  if (driver == nullptr) return nullptr;
  return std::make_unique<SqliteReadModel>(*driver, build.describe(), build.prefix());
}

}  // namespace stela::projections
