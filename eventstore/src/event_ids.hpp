// Which event has which id: what the tables have no index for.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <optional>

namespace stela {

/// The ids of any number of events, in a temporary file of SQLite's own once they are many.
/// Threads: one at a time.
class EventIds {
 public:
  EventIds();

  /// The event that has the id already; else `sequence` has it from now on.
  std::optional<std::int64_t> add(const Uuid& id, std::int64_t sequence);

 private:
  sqlite::Connection connection_;
};

}  // namespace stela
