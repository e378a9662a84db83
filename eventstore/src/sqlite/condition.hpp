// Checks an append's condition, inside its transaction.
#pragma once

#include "database/sqlite/connection.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/kinds.hpp"

#include <stela/framework/query.hpp>

namespace stela::sqlite {

/// ConditionConflict, naming the first matching event after the condition's position.
void check_holds(const AppendCondition& condition, Connection& connection, KindTable& kinds);

}  // namespace stela::sqlite
