// Back-offs as rows hold them: by the time when they end.
#pragma once

#include <stela/framework/clock.hpp>

#include <algorithm>
#include <chrono>

namespace stela::outbox {

/// Zero if there is nothing to wait for, which has always passed.
inline Timestamp end_of(std::chrono::microseconds wait, Timestamp now) {
  return wait.count() > 0 ? now + wait : Timestamp{};
}

/// Until `end`; zero if that has passed.
inline std::chrono::microseconds time_left(Timestamp end, Timestamp now) {
  return std::max(end - now, std::chrono::microseconds{});
}

}  // namespace stela::outbox
