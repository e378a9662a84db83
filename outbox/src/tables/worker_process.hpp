// Where a worker runs, and whether it is still running.
#pragma once

#include "database/database.hpp"

#include <stela/outbox/messages.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::outbox {

/// A worker's identity, from its row.
struct WorkerIdentity {
  std::string_view host = {};
  std::int64_t pid = 0;
  /// Unset for a worker of an older Stela. Then only host and pid are known, which can't identify a
  /// process in another container.
  std::optional<std::int64_t> presence = {};
};

/// Finds the process of a worker of this database.
WorkerProcess find_process(const database::Database& database, const WorkerIdentity& worker);

}  // namespace stela::outbox
