// After an owner's sudden death: which message may have been the cause.
#pragma once

#include "relay/outbox_port.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace stela::relay {

/// Keeps in step how many of the next messages were in flight at the death, how many of them may go
/// at a time, and the one that must be the cause if it was alone, until it is charged and
/// acquitted.
class Suspicion {
 public:
  void begin(const Standing& standing) {
    *this = {};
    if (!standing.unclean || standing.flight_count <= 0) return;
    suspects_ = standing.flight_count;
    window_ = static_cast<std::size_t>(std::max<std::int64_t>(suspects_ / narrowing, 1));
    if (suspects_ == 1) suspect_ = standing.flight_through;
  }

  /// How many messages may be in flight, of `most`.
  std::size_t window(std::size_t most) const noexcept {
    return suspects_ > 0 ? std::min(window_, most) : most;
  }
  /// So many of the next messages did no harm.
  void pass(std::int64_t count) noexcept {
    suspects_ = std::max<std::int64_t>(suspects_ - count, 0);
  }

  bool suspects(const PendingMessage& message) const noexcept {
    return message.sequence == suspect_;
  }
  /// The suspect was charged in the store, right before it is sent.
  void charge() noexcept { charged_ = std::exchange(suspect_, {}); }
  bool is_charged(const PendingMessage& message) const noexcept {
    return message.sequence == charged_;
  }
  /// It was acquitted, or has earned the charge.
  void close() noexcept { charged_ = {}; }

 private:
  /// After a sudden death this part of what was in flight goes at a time. A death costs a lease and
  /// a process, a round trip next to nothing: so a killer is found in few deaths, not few trips.
  static constexpr std::int64_t narrowing = 16;

  std::int64_t suspects_ = 0;
  std::size_t window_ = 0;
  GlobalSequence suspect_ = {};
  GlobalSequence charged_ = {};
};

}  // namespace stela::relay
