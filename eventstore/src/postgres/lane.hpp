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

namespace stela::postgres {

/// A connection only for groups of appends. A group's flush follows its append in the same round
/// trip. The append's transaction ends before the flush begins, so that others can append meanwhile
/// on another connection.
struct Lane {
  std::unique_ptr<ServerSession> session;
  /// True from when the leader takes the lane until the flush is answered.
  std::atomic<bool> is_busy{false};
};

/// Two lanes: one flush is in flight, and another waits for the disk after it.
using Lanes = std::array<Lane, 2>;

/// A group whose append has been answered, while its flush is still in flight.
struct Flight {
  Lane* lane = nullptr;
  /// Set once the append was sent with its flush.
  std::optional<Connection::Pipeline> pipeline = {};
  bool is_awaited = false;
  Uuid run = {};
  std::int64_t sequence = 0;
  std::chrono::steady_clock::time_point deadline = {};
};

}  // namespace stela::postgres
