// Where a filtered read of the whole store has to look.
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

/// The ranges that hold every event which a filter can select, in the direction of the read. They
/// may hold others as well; none is longer than a read transaction should last.
/// Threads: one at a time.
class Candidates {
 public:
  virtual ~Candidates() = default;
  /// The next one within `left`, what is not yet read; nothing if there is none. To be asked with
  /// what the one before left over, so that the ranges follow each other.
  virtual std::optional<Range> next(Connection& connection, Range left) = 0;
};

/// `categories` and `types`: JSON arrays, empty for all.
std::unique_ptr<Candidates> find_candidates(const AllQuery& query, const std::string& categories,
                                            const std::string& types);

}  // namespace stela::sqlite
