// The connections of a store that carry out groups of appends.
#pragma once

#include "database/postgres/connection.hpp"
#include "postgres/server_session.hpp"

#include <stela/framework/uuid.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stela::postgres {

/// A connection for groups of appends alone. A group's flush goes behind its append in the same
/// round trip: the append ends before the flush begins, so that others append meanwhile, on another
/// connection.
struct Lane {
  std::unique_ptr<ServerSession> session;
  /// From when the leader takes it until the flush has been answered.
  std::atomic<bool> is_busy{false};
};

/// Two: one flush is under way, and another waits for the disk behind it.
using Lanes = std::array<Lane, 2>;

/// What a session of a lane has for its life. Its transactions wait so long for a lock.
void set_up_lane(Connection& connection, const std::string& lock_timeout);

/// A group whose append has been answered, and whose flush hasn't.
struct Flight {
  Lane* lane = nullptr;
  /// Set once the append was sent with its flush.
  std::optional<Connection::Pipeline> pipeline = {};
  bool is_awaited = false;
  Uuid run = {};
  std::int64_t sequence = 0;
  std::chrono::steady_clock::time_point deadline = {};
};

/// What goes behind an append: a commit record of its own, which the server flushes with all that
/// stands before it.
inline constexpr std::string_view flush_sql = "SELECT pg_logical_emit_message(true, 'stela', '')";

}  // namespace stela::postgres
