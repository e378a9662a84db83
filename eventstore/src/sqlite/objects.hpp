// The tables, indexes, triggers and views of a database.
#pragma once

#include "database/migration.hpp"
#include "database/sqlite/connection.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::sqlite {

/// An object as described by sqlite_schema.
struct Object {
  std::string type;
  std::string table;
  /// On one line.
  std::string sql;
  friend bool operator==(const Object&, const Object&) = default;
};
/// By name.
using Objects = std::map<std::string, Object>;

Objects objects_of(Connection& connection);
/// The objects that the migrations of `module` add to an event store.
Objects objects_made_by(std::string_view module, std::span<const database::Migration> migrations);

/// Existing names that the migrations of `module` after the first `applied` would need.
std::vector<std::string> taken_names(Connection& connection, std::string_view module,
                                     std::span<const database::Migration> migrations,
                                     std::size_t applied);

}  // namespace stela::sqlite
