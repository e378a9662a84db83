// Temporary tables, views and triggers that come between Stela's SQL and the tables it means.
#pragma once

#include "database/sqlite/connection.hpp"

#include <optional>
#include <string>

namespace stela::sqlite {

/// A temporary table or view that SQL finds in the place of the database's of that name, or a
/// temporary trigger on a table of the database.
struct StandIn {
  std::string type;
  std::string name;
};

/// The first on this connection. Also of a table that a module of Stela's may make later. Reads no
/// file if nothing temporary is left on the connection.
std::optional<StandIn> find_stand_in(Connection& connection);

/// UsageError, which names the first, if there is one.
void refuse_stand_ins(Connection& connection);

/// Drops everything temporary, outside any transaction.
void drop_temporary(Connection& connection);

}  // namespace stela::sqlite
