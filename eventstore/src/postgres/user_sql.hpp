// The user's SQL in a transaction of the store.
#pragma once

#include "database/postgres/connection.hpp"

#include <stela/eventstore/rows.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace stela::postgres {

/// Runs one statement in the open transaction, between savepoints: if it fails, the transaction
/// continues. It finds the user's tables first, then Stela's, which it may only read. Returns how
/// many rows it changed, and fills `rows` unless it is null. UsageError if it is wrong, ends the
/// transaction or changes Stela's tables.
std::int64_t run_user_sql(Connection& connection, std::string_view sql,
                          std::span<const SqlValue> values, Rows* rows);

}  // namespace stela::postgres
