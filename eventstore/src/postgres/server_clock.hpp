// The server's time, which all users of the database share.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/clock.hpp>

#include <chrono>
#include <mutex>

namespace stela::postgres {

/// Asks the server for the time.
Timestamp ask_for_time(Connection& connection);

/// The server's answer, and when it came by the host's steady clock.
struct ServerTime {
  static ServerTime ask(Connection& connection);

  std::chrono::steady_clock::time_point asked_at = {};
  Timestamp answer = {};
};

/// Asks the server about once a second, and uses the host's steady clock in between.
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
