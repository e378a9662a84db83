// Whether a worker still runs.
#pragma once

#include "database/database.hpp"

#include <stela/outbox/messages.hpp>

#include <cstdint>

namespace stela::outbox {

/// Of the worker of this database with that presence.
inline WorkerProcess find_process(const database::Database& database,
                                  std::int64_t presence) noexcept {
  const auto lives = database.is_present(presence);
  if (!lives) return WorkerProcess::unknown;
  return *lives ? WorkerProcess::runs : WorkerProcess::ended;
}

}  // namespace stela::outbox
