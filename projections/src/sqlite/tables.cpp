#include "sqlite/tables.hpp"

#include "projections_sql.hpp"
#include "sqlite/checksum.hpp"
#include "sqlite/schema.hpp"

#include <stela/framework/error.hpp>

#include <vector>

namespace stela::projections {

using sqlite::Connection;
using sqlite::Query;

namespace {

/// The plain names of the tables of a build.
std::vector<std::string> plain_names(Connection& connection, const Build& build) {
  const std::string prefix = build.prefix();
  std::vector<std::string> names;
  Query query = connection.query(sql::tables);
  query.bind(1, prefix);
  while (query.step()) {
    if (query.text(0) != "table") continue;
    names.emplace_back(query.text(1).substr(prefix.size()));
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

/// The view also shows what `*` leaves out of a virtual table: the hidden columns, with which a
/// full-text index is searched and ranked, and the rowid. A hidden column that is called as the
/// table gets its plain name.
std::string view_of(Connection& connection, const Build& build, const std::string& name) {
  const std::string table = build.prefix() + name;
  std::string hidden;
  Query query = connection.query(sql::hidden_columns);
  query.bind(1, table);
  while (query.step()) {
    const std::string column{query.text(0)};
    hidden += ", " + in_quotes(column) + " AS " + in_quotes(column == table ? name : column);
  }
  std::string view = plain_view_of(build, name);
  if (hidden.empty()) return view;
  const std::size_t behind_star = view.find(every_column) + every_column.size();
  return view.insert(behind_star, ", rowid AS rowid" + hidden);
}

/// UsageError for a name that SQLite gives nobody, or that a module of Stela's may need, now or
/// later.
void refuse_reserved(const Build& build, const std::string& name) {
  const bool is_sqlites = sqlite3_strnicmp(name.c_str(), "sqlite_", 7) == 0;
  if (!is_sqlites && !sqlite::is_reserved_name(name)) return;
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and names that begin in that way are " +
                   (is_sqlites ? "SQLite's" : "Stela's") + "; give the table another"};
}

/// True if the plain name stands for a build of this projector; UsageError if for something else.
bool is_shown(Connection& connection, const Build& build, const std::string& name) {
  Query query = connection.query(sql::find_object);
  if (!query.bind(1, name).step()) return false;
  const std::string begin = "CREATE VIEW " + in_quotes(name) + std::string{every_column};
  const std::string from = " FROM \"" + build.name + '@';
  if (query.text(1).starts_with(begin) && query.text(1).find(from) != std::string_view::npos) {
    return true;
  }
  throw UsageError{build.describe() + " has a table {" + name +
                   "}, and the database has something else of that name; give the table another"};
}

std::int64_t definitions_of(Connection& connection, const Build& build) {
  std::int64_t sum = 0;
  const std::string prefix = build.prefix();
  Query query = connection.query(sql::tables);
  query.bind(1, prefix);
  while (query.step()) {
    sum = sqlite::checksum_of({sum}, {query.text(0), query.text(1), query.text(2)});
  }
  return sum;
}

void drop_tables(Connection& connection, const Build& build) {
  // Tables may refer to each other; what counts is that nothing is left at the end.
  connection.execute("PRAGMA defer_foreign_keys = ON");
  for (const std::string& name : plain_names(connection, build)) {
    // A table with shadow tables takes them along.
    connection.execute("DROP TABLE IF EXISTS " + in_quotes(build.prefix() + name));
  }
}

}  // namespace

void make_tables(Connection& connection, const Build& build, detail::AnyProjector& projector,
                 SqliteReadModel& model) {
  model.allow_creation(true);
  projector.create(model);
  model.allow_creation(false);
  for (const std::string& name : plain_names(connection, build)) {
    refuse_reserved(build, name);
    (void)is_shown(connection, build, name);
  }
  connection.query(sql::set_definitions)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, definitions_of(connection, build))
      .run();
}

std::string find_alteration(Connection& connection, const Build& build) {
  if (build.kind == Kind::reaction) return {};
  if (definitions_of(connection, build) != build.definitions) {
    return "the tables of " + build.describe() + " (\"" + build.prefix() +
           "…\") were altered or dropped by hand; rebuild it";
  }
  if (build.state != State::living) return {};
  for (const std::string& name : plain_names(connection, build)) {
    Query query = connection.query(sql::find_object);
    // Earlier versions showed no hidden columns.
    if (!query.bind(1, name).step() || (query.text(1) != view_of(connection, build, name) &&
                                        query.text(1) != plain_view_of(build, name))) {
      return "the view '" + name + "' of " + build.describe() +
             " was altered or dropped by hand; rebuild it";
    }
  }
  return {};
}

void show(Connection& connection, const Build& build) {
  for (const std::string& name : plain_names(connection, build)) {
    if (is_shown(connection, build, name)) connection.execute("DROP VIEW " + in_quotes(name));
    connection.execute(view_of(connection, build, name));
  }
}

void hide(Connection& connection, const Build& build) {
  for (const std::string& name : plain_names(connection, build)) {
    const auto is_ours = [&] {
      Query query = connection.query(sql::find_object);
      return query.bind(1, name).step() && (query.text(1) == view_of(connection, build, name) ||
                                            query.text(1) == plain_view_of(build, name));
    };
    if (is_ours()) connection.execute("DROP VIEW " + in_quotes(name));
  }
}

void drop(Connection& connection, const Build& build) {
  if (build.target == 0) drop_tables(connection, build);
  connection.query(sql::delete_parked_of_build).bind(1, build.name).bind(2, build.number).run();
  connection.query(sql::delete_build).bind(1, build.name).bind(2, build.number).run();
}

}  // namespace stela::projections
