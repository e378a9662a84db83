// What operators did, as each module's operations record it.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/query.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace stela {

struct OperatorAction {
  std::int64_t number = 0;
  Timestamp at = {};
  std::string who = {};
  std::string what = {};
  std::string detail = {};
  /// What was selected, in words. Empty if that isn't kept.
  std::string selection = {};
  /// Messages that were meant, that it was done to, and that weren't any more as they were planned.
  /// Unset where they aren't counted.
  std::optional<std::int64_t> planned = {};
  std::optional<std::int64_t> done = {};
  std::optional<std::int64_t> changed = {};
  /// "done", "failed", or "unfinished": it goes on, was interrupted, or its process ended.
  std::string state = "done";
};

struct ActionQuery {
  /// Only actions before this one: for the next page.
  std::optional<std::int64_t> before = {};
  int limit = 100;
  /// Only actions after this one.
  std::int64_t after = 0;
  Direction direction = Direction::backward;
  /// Set: the items of this action, what it did step by step. The first thousand are kept.
  std::int64_t items_of = 0;
};

}  // namespace stela
