// Maps ids to events, because the tables have no index for them.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <optional>

namespace stela {

/// The ids of any number of events; large numbers are kept in a temporary SQLite file.
/// Threads: one at a time.
class EventIds {
 public:
  EventIds();

  /// The event that already has the id; otherwise records it for `sequence`.
  std::optional<std::int64_t> add(const Uuid& id, std::int64_t sequence);

 private:
  sqlite::Connection connection_;
};

}  // namespace stela
