// Several builds in as few passes over the events as can be.
#pragma once

#include "feed.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <span>
#include <stop_token>
#include <vector>

namespace stela::projections {

struct Pass {
  /// What to read: `from` is each group's own.
  AllQuery query = {};
  std::int64_t end = 0;
  /// How many pages each group gets.
  int pages = 16;
  bool decode_ahead = false;
};

/// Takes the seats towards the end of the pass, those behind first: they stop where others stand,
/// and go on together with them. `after_batch` says whether to go on.
void feed_in_groups(Store& store, Feed& feed, std::span<Seat* const> seats, const Pass& pass,
                    FunctionRef<bool()> after_batch);

}  // namespace stela::projections
