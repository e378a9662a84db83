// Finds the ranges that a filtered read of all events must scan.
#pragma once

#include "database/sqlite/connection.hpp"
#include "ledger/pages.hpp"

#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stela::sqlite {

using ledger::Range;

/// Ranges that contain every event a filter can select, in the direction of the read. They may
/// contain others; none is longer than a read transaction should last.
/// Threads: one at a time.
class Candidates {
 public:
  virtual ~Candidates() = default;
  /// The next range within `left`, the unread rest; nothing if there is none. Call it with the rest
  /// after the previous range, so that ranges are consecutive.
  virtual std::optional<Range> next(Connection& connection, Range left) = 0;
};

/// `categories` and `types` are JSON arrays, empty for all.
std::unique_ptr<Candidates> find_candidates(const AllQuery& query, const std::string& categories,
                                            const std::string& types);

}  // namespace stela::sqlite
