// Events from a position on, as far as a pass goes.
#pragma once

#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stela::projections {

/// The events behind `from` and up to `end`: those that match, and all that was looked through.
struct Batch {
  std::int64_t from = 0;
  std::span<const StoredEvent> events = {};
  std::int64_t end = 0;
};

/// Threads: one at a time.
class Scan {
 public:
  /// `query.to` is a sequence that the store has.
  Scan(Store& store, const AllQuery& query)
      : range_{store.read_all(query)},
        from_{query.from.value() - 1},
        end_{query.to.value()},
        done_{query.from > query.to} {}

  bool is_done() const noexcept { return done_; }

  /// The next page, valid until the next call; the last one ends where the query ends, also if
  /// nothing matched.
  Batch next() {
    Batch batch{from_, range_.next_page(), end_};
    if (!batch.events.empty()) batch.end = batch.events.back().sequence.value();
    from_ = batch.end;
    done_ = batch.events.empty() || batch.end == end_;
    return batch;
  }

 private:
  EventRange range_;
  std::int64_t from_;
  std::int64_t end_;
  bool done_;
};

/// The last sequence of the store.
std::int64_t last_sequence(Store& store);

/// The types to filter by: none if nearly everything in the store is wanted anyway.
std::vector<std::string> types_to_read(Store& store, std::vector<std::string> wanted);

}  // namespace stela::projections
