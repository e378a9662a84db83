// Feeds several builds in as few passes over the events as possible.
#pragma once

#include "feed.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <span>
#include <stop_token>
#include <vector>

namespace stela::projections {

struct Pass {
  /// What to read, except for `from`, which each group sets.
  AllQuery query = {};
  std::int64_t end = 0;
  /// How many pages each group gets.
  int pages = 16;
  bool decode_ahead = false;
};

/// Takes the seats towards the end of the pass, beginning with the last ones: when they reach
/// others, they continue together. `after_batch` returns whether to continue.
void feed_in_groups(Store& store, Feed& feed, std::span<Seat* const> seats, const Pass& pass,
                    FunctionRef<bool()> after_batch);

}  // namespace stela::projections
