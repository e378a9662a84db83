// Lets an append wake followers in other processes.
#pragma once

#include "postgres/server_session.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stela::postgres {

/// A follower sleeps here until another process appends. Meanwhile it holds a lock, shared with
/// other sleepers. Each append tries that lock under the order lock, and keeps it until it has
/// committed; if it can't get the lock, it rings after its commit. So nobody rings when nobody
/// sleeps.
/// Threads: one at a time.
class Doorbell {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Doorbell(Sessions& sessions) noexcept : sessions_{sessions} {}

  /// Takes the sleepers' lock, then returns the last sequence: later appends ring. Called again, it
  /// only returns the sequence. Nothing if an append is being committed just then, or where
  /// sleeping is impossible: behind a pooler, and on a standby.
  std::optional<std::int64_t> lie_down();
  bool is_asleep() const noexcept { return is_asleep_; }
  /// Sleeps until a ring, until `other` is readable, or until `until`. True if there may have been
  /// a ring.
  bool sleep(int other, Time until);
  /// Nobody needs to ring from now on. Doesn't wait.
  void get_up() noexcept;

 private:
  /// Reads the server's answer to `get_up`. False if none comes in time.
  bool has_got_up() noexcept;
  /// Closes the connection, which releases the lock.
  void close() noexcept;
  /// The connection that listens for rings.
  Connection& connection();

  Sessions& sessions_;
  std::unique_ptr<ServerSession> session_;
  bool is_asleep_ = false;
  bool is_getting_up_ = false;
};

/// The sleepers' lock.
std::int64_t bell_lock(std::string_view schema) noexcept;

/// Wakes sleeping followers. Call it outside of transactions. Failures are ignored, because
/// followers look once a second.
void ring(Connection& connection) noexcept;

/// Waits until one of two descriptors is readable, or until a time. Returns whether the first one
/// is; a negative descriptor is ignored.
bool wait_for_either(int first, int second, std::chrono::steady_clock::time_point until) noexcept;

}  // namespace stela::postgres
