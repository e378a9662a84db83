// The failure record in a follower's row: of the event or message that comes next.
#pragma once

#include "follow/backoff.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela::follow {

struct Failing {
  /// The sequence of the failing one, at the store or at the broker; 0 if nothing failed.
  std::int64_t at = 0;
  /// Only attempts that count.
  int attempts = 0;
  Timestamp next_attempt_at = {};
  std::string error = {};

  /// Failures at another sequence don't count.
  int attempts_at(std::int64_t sequence) const noexcept { return at == sequence ? attempts : 0; }

  /// Nobody is to blame: it waits for a follower that knows the version, or has memory.
  bool has_no_attempt() const noexcept { return at > 0 && attempts == 0; }

  std::chrono::microseconds pause_left(const Backoff& backoff, Timestamp now) const {
    return at > 0 ? backoff.left(next_attempt_at, now) : std::chrono::microseconds{0};
  }
};

}  // namespace stela::follow
