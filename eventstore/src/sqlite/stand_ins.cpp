#include "sqlite/stand_ins.hpp"

#include "database/reserved_names.hpp"
#include "sqlite_sql/objects.hpp"

#include <stela/framework/error.hpp>

#include <string_view>

namespace stela::sqlite {
namespace {

bool is_of_database(Connection& connection, std::string_view table) {
  return database::is_reserved_name(table) || connection.rows(sql::has_table{.name = table}).step();
}

}  // namespace

std::optional<StandIn> find_stand_in(Connection& connection) {
  auto temporary = connection.rows(sql::temporary_objects{});
  while (temporary.step()) {
    if (!is_of_database(connection, temporary.table_name())) continue;
    return StandIn{std::string{temporary.type()}, std::string{temporary.name()}};
  }
  return std::nullopt;
}

void refuse_stand_ins(Connection& connection) {
  const auto found = find_stand_in(connection);
  if (!found) return;
  const std::string harm = found->type == "trigger"
                               ? "which changes what is written to a table of the database"
                               : "which would be used instead of a table of the database";
  throw UsageError{"the work left a temporary " + found->type + " '" + found->name + "', " + harm +
                   "; drop it before anything is appended and before the work ends, or use another "
                   "name; all of it is rolled back"};
}

void drop_temporary(Connection& connection) {
  // SQLite drops it when the place where it is kept changes.
  connection.execute("PRAGMA temp_store = FILE; PRAGMA temp_store = DEFAULT");
  connection.execute("PRAGMA temp_store = MEMORY; PRAGMA temp_store = DEFAULT");
}

}  // namespace stela::sqlite
