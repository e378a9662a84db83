// A commit whose answer was lost.
#pragma once

#include "postgres/standby_wait.hpp"

#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela::postgres {

struct Settled {
  /// It was never committed, and never will be.
  bool is_void = false;
  /// The sequences of the group's events, if it was a group of appends.
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Asks under the order lock whether `group` was committed, and if not, makes sure that it never
/// will be. The answer is durable.
Settled settle_group(ServerSession& session, const Uuid& group, std::int64_t order_lock,
                     const std::string& lock_timeout, const StandbyPatience& patience);

}  // namespace stela::postgres
