#include "sqlite/objects.hpp"

#include "sqlite/schema.hpp"
#include "sqlite_sql.hpp"
#include "sqlite_sql/objects.hpp"

#include <algorithm>
#include <utility>

namespace stela::sqlite {
namespace {

/// SQLite's names ignore case, and a trigger may have a table's name.
bool is_in_the_way(const Objects::value_type& one, const Objects::value_type& other) {
  return (one.second.type == "trigger") == (other.second.type == "trigger") &&
         sqlite3_stricmp(one.first.c_str(), other.first.c_str()) == 0;
}

}  // namespace

Objects objects_of(Connection& connection) {
  Objects objects;
  auto rows = connection.rows(sql::inspect_schema{});
  while (rows.step()) {
    std::string definition{rows.definition()};
    std::replace(definition.begin(), definition.end(), '\n', ' ');
    objects.emplace(rows.name(), Object{.type = std::string{rows.type()},
                                        .table = std::string{rows.table_name()},
                                        .sql = std::move(definition)});
  }
  return objects;
}

Objects objects_made_by(std::string_view module, std::span<const database::Migration> migrations) {
  Connection scratch{":memory:", {.flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY}};
  Objects before;
  if (module != "eventstore") {
    migrate(scratch, "eventstore", sql::migrations, {});
    before = objects_of(scratch);
  }
  migrate(scratch, module, migrations, {});
  Objects made = objects_of(scratch);
  for (const auto& [name, object] : before) made.erase(name);
  return made;
}

std::vector<std::string> taken_names(Connection& connection, std::string_view module,
                                     std::span<const database::Migration> migrations,
                                     std::size_t applied) {
  const Objects made = objects_made_by(module, migrations);
  const Objects ours = objects_made_by(module, migrations.first(applied));
  std::vector<std::string> taken;
  for (const auto& object : objects_of(connection)) {
    const auto takes = [&](const auto& other) { return is_in_the_way(object, other); };
    if (std::any_of(made.begin(), made.end(), takes) &&
        std::none_of(ours.begin(), ours.end(), takes)) {
      taken.push_back(object.first);
    }
  }
  return taken;
}

}  // namespace stela::sqlite
