// The time by the server's clock, which all who use the database share.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <mutex>

namespace stela::postgres {

/// The server's clock, as it answers.
Timestamp ask_for_time(Connection& connection);

/// What it answered, and when by the host's steady clock.
struct ServerTime {
  static ServerTime ask(Connection& connection);

  std::chrono::steady_clock::time_point asked_at = {};
  Timestamp answer = {};
};

/// Asks the server about once a second, and goes by the host's steady clock in between.
/// Threads: any number at once.
class ServerClock {
 public:
  explicit ServerClock(const ServerTime& first) noexcept : last_{first} {}

  Timestamp now(Sessions& sessions);

 private:
  std::mutex mutex_;
  /// Guarded by mutex_.
  ServerTime last_;
};

}  // namespace stela::postgres
