// When a follower's lease is over, as its row tells: the one place that says so.
#pragma once

#include "database/database.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace stela::follow {

/// The lease of whoever works on what a row stands for, or a worker's heartbeat. It is judged by
/// its own length, whatever the length of the reader's leases is.
struct StoredLease {
  Timestamp until = {};
  /// How long it is when it is taken or renewed; unset if an older Stela wrote it.
  std::optional<std::chrono::microseconds> length = {};
  /// Of its holder; unset if the holder has none, or an older Stela wrote the lease.
  std::optional<std::int64_t> presence = {};
};

/// As a row has it: microseconds.
inline std::optional<std::chrono::microseconds> length_of(
    std::optional<std::int64_t> stored) noexcept {
  if (!stored) return std::nullopt;
  return std::chrono::microseconds{*stored};
}

/// What a lease may last whose length isn't known. So long a process of an older Stela is believed.
constexpr std::chrono::hours longest_unknown_length{1};

/// It ends further away than its length allows, even if two clocks differ by that length: it was
/// taken by a clock that was wrong.
inline bool is_absurd(const StoredLease& lease, Timestamp now) noexcept {
  return (lease.until - now) / 2 > lease.length.value_or(longest_unknown_length);
}

/// It has run out, or is absurd: its holder may renew it, and anybody may take it.
inline bool is_over(const StoredLease& lease, Timestamp now) noexcept {
  return lease.until <= now || is_absurd(lease, now);
}

/// Its holder is seen to have ended, so nobody has to wait until the lease runs out.
inline bool is_orphaned(const StoredLease& lease, const database::Database& database) noexcept {
  return lease.presence && database.is_present(*lease.presence) == false;
}

}  // namespace stela::follow
