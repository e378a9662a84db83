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
  /// How many messages were planned, were done, and had changed since they were planned. Unset if
  /// they aren't counted.
  std::optional<std::int64_t> planned = {};
  std::optional<std::int64_t> done = {};
  std::optional<std::int64_t> changed = {};
  /// "done", "failed", or "unfinished": it continues, was interrupted, or its process ended.
  std::string state = "done";
};

struct ActionQuery {
  /// Only actions before this one: for the next page.
  std::optional<std::int64_t> before = {};
  int limit = 100;
  /// Only actions after this one.
  std::int64_t after = 0;
  Direction direction = Direction::backward;
  /// If set: the items of this action, step by step. The first thousand are kept.
  std::int64_t items_of = 0;
};

}  // namespace stela
