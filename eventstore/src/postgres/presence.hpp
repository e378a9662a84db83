// A lock that shows that a process lives, and ends with its connection.
#pragma once

#include "database/owner.hpp"
#include "database/presence.hpp"
#include "postgres/server_session.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace stela::postgres {

/// The presences of a store, on one connection, which stays open while one of them exists. Behind a
/// pooler nobody sees them: session locks would belong to the pooler. It must outlive them.
/// Threads: any number at once.
class Presences {
 public:
  explicit Presences(Sessions& sessions) : sessions_{sessions} {}

  std::unique_ptr<database::Presence> appear();

 private:
  class Presence;

  /// Locks the number, and relocks all numbers that were lost with the connection.
  void hold(std::int64_t number);
  void drop(std::int64_t number) noexcept;
  void find_connection();

  const database::OwningProcess maker_;
  Sessions& sessions_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<ServerSession> session_;
  /// Whether each number is locked on the connection.
  std::map<std::int64_t, bool> numbers_;
};

/// Nothing if the server can't tell.
std::optional<bool> is_present(Sessions& sessions, std::int64_t number) noexcept;

}  // namespace stela::postgres
