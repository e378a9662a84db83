// Finds the events that can match a query by tags and types.
#pragma once

#include "database/sqlite/connection.hpp"
#include "sqlite/kinds.hpp"

#include <stela/framework/query.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace stela::sqlite {

/// Sequences, in the direction of a read.
/// Threads: one at a time.
class Places {
 public:
  virtual ~Places() = default;
  /// The first sequence at or after `from`, in the direction; nothing if there is none.
  virtual std::optional<std::int64_t> next(Connection& connection, std::int64_t from) = 0;
};

/// The places of every event that can match the item; some of these events may not match.
std::unique_ptr<Places> places_of(const QueryItem& item, KindTable& kinds, Direction direction);
/// The places for all items, without duplicates.
std::unique_ptr<Places> places_of(const stela::Query& query, KindTable& kinds, Direction direction);

}  // namespace stela::sqlite
