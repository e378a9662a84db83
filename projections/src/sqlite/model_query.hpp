// A user's query on read models in SQLite databases.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/rows.hpp>

#include <span>
#include <string_view>

namespace stela::projections {

/// UsageError for anything but a read.
void query_model(database::Connection& connection, std::string_view sql,
                 std::span<const SqlValue> values, Rows* rows);

}  // namespace stela::projections
