// Counts the steps of SQLite's virtual machine instead of timing work.
#pragma once

#include "sqlite/core.hpp"

#include <cstdint>
#include <functional>

namespace stela::test {

/// The steps that SQLite took for all statements of a connection since the last call.
inline std::int64_t steps_of(sqlite::Connection& connection) {
  std::int64_t steps = 0;
  for (sqlite3_stmt* each = sqlite3_next_stmt(connection.handle(), nullptr); each != nullptr;
       each = sqlite3_next_stmt(connection.handle(), each)) {
    steps += sqlite3_stmt_status(each, SQLITE_STMTSTATUS_VM_STEP, 1);
  }
  return steps;
}

/// The steps of `work`, on one thread.
inline std::int64_t steps_of(Store& store, const std::function<void()>& work) {
  const auto count = [&] {
    std::int64_t steps = 0;
    const auto add = [&](sqlite::Connection& connection) { steps += steps_of(connection); };
    // The connection used last is the next one to be used.
    sqlite::core_of(store).reading().read(add);
    sqlite::core_of(store).writer().read(add);
    return steps;
  };
  count();
  work();
  return count();
}

}  // namespace stela::test
