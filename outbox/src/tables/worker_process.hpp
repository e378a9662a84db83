// Where a worker runs, and whether it still does.
#pragma once

#include "database/database.hpp"

#include <stela/outbox/messages.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::outbox {

/// Who a worker is, as its row tells.
struct WorkerIdentity {
  std::string_view host = {};
  std::int64_t pid = 0;
  /// Unset for a worker of an older Stela: then host and pid have to do, which say nothing of
  /// another container.
  std::optional<std::int64_t> presence = {};
};

/// Of a worker of this database.
WorkerProcess find_process(const database::Database& database, const WorkerIdentity& worker);

}  // namespace stela::outbox
