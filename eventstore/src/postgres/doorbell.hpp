// How an append wakes followers in other processes.
#pragma once

#include "postgres/server_session.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stela::postgres {

/// Where a follower sleeps until another process appends. It holds a lock meanwhile, shared with
/// others who sleep. Each append tries that lock under the order lock, and keeps it until it is
/// committed; one that doesn't get it rings after its commit. So nobody rings while nobody sleeps.
/// Threads: one at a time.
class Doorbell {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Doorbell(Sessions& sessions) noexcept : sessions_{sessions} {}

  /// Lies down, and looks after that: the last sequence. What is appended from then on rings.
  /// Again, it only looks. Nothing if an append is being committed just then, or where nobody can
  /// sleep: behind a pooler, and on a standby.
  std::optional<std::int64_t> lie_down();
  bool is_asleep() const noexcept { return is_asleep_; }
  /// Until somebody rings, `other` can be read, or `until`. True if somebody may have rung.
  bool sleep(int other, Time until);
  /// Nobody needs to ring from now on. Waits for nothing.
  void get_up() noexcept;

 private:
  /// The answer to that. False if there is none in time.
  bool has_got_up() noexcept;
  /// With its lock.
  void close() noexcept;
  /// On a connection that listens.
  Connection& connection();

  Sessions& sessions_;
  std::unique_ptr<ServerSession> session_;
  bool is_asleep_ = false;
  bool is_getting_up_ = false;
};

/// The lock of those who sleep.
std::int64_t bell_lock(std::string_view schema) noexcept;

/// In an append's transaction, under the order lock: false if somebody sleeps.
inline constexpr std::string_view try_bell_sql = "SELECT pg_try_advisory_xact_lock($1)";

/// Wakes those who sleep. Outside of a transaction; what fails is left: they look once a second.
void ring(Connection& connection) noexcept;

/// Waits until one of two descriptors can be read, or until then. Of the first whether it can; a
/// negative one is none.
bool wait_for_either(int first, int second, std::chrono::steady_clock::time_point until) noexcept;

}  // namespace stela::postgres
