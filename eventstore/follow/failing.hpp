// What a follower's row says of the one that it stands before, if that failed.
#pragma once

#include "follow/backoff.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela::follow {

struct Failing {
  /// Its sequence, at the store or at the broker; 0 if nothing failed.
  std::int64_t at = 0;
  /// Those that count.
  int attempts = 0;
  Timestamp next_attempt_at = {};
  std::string error = {};

  /// What another one failed with doesn't count.
  int attempts_at(std::int64_t sequence) const noexcept { return at == sequence ? attempts : 0; }

  /// Nobody is to blame: it waits for a follower that knows a version, or that has memory.
  bool has_no_attempt() const noexcept { return at > 0 && attempts == 0; }

  std::chrono::microseconds pause_left(const Backoff& backoff, Timestamp now) const {
    return at > 0 ? backoff.left(next_attempt_at, now) : std::chrono::microseconds{0};
  }
};

}  // namespace stela::follow
