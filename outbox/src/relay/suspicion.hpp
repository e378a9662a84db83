// Which message may have caused an owner's sudden death.
#pragma once

#include "relay/outbox_port.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace stela::relay {

/// Keeps consistent how many of the next messages were in flight at the death, how many may be in
/// flight now, and the message that must be the cause if it was alone, until it is charged and
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

  /// How many messages may be in flight, up to `most`.
  std::size_t window(std::size_t most) const noexcept {
    return suspects_ > 0 ? std::min(window_, most) : most;
  }
  /// This many of the next messages are harmless.
  void pass(std::int64_t count) noexcept {
    suspects_ = std::max<std::int64_t>(suspects_ - count, 0);
  }

  bool suspects(const PendingMessage& message) const noexcept {
    return message.sequence == suspect_;
  }
  /// The store has recorded the charge, just before the suspect is sent.
  void charge() noexcept { charged_ = std::exchange(suspect_, {}); }
  bool is_charged(const PendingMessage& message) const noexcept {
    return message.sequence == charged_;
  }
  /// The suspect was acquitted, or has deserved the charge.
  void close() noexcept { charged_ = {}; }

 private:
  /// After a sudden death, this fraction of the former messages is in flight at a time. A death
  /// costs a lease and a process, a round trip almost nothing: so few deaths must suffice to find a
  /// killer, not few round trips.
  static constexpr std::int64_t narrowing = 16;

  std::int64_t suspects_ = 0;
  std::size_t window_ = 0;
  GlobalSequence suspect_ = {};
  GlobalSequence charged_ = {};
};

}  // namespace stela::relay
