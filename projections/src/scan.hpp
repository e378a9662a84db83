// Reads the events of a pass from a position on.
#pragma once

#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stela::projections {

/// The matching events after `from` and up to `end`.
struct Batch {
  std::int64_t from = 0;
  std::span<const StoredEvent> events = {};
  std::int64_t end = 0;
};

/// Threads: one at a time.
class Scan {
 public:
  /// `query.to` must be an existing sequence.
  Scan(Store& store, const AllQuery& query)
      : range_{store.read_all(query)},
        from_{query.from.value() - 1},
        end_{query.to.value()},
        done_{query.from > query.to} {}

  bool is_done() const noexcept { return done_; }

  /// The next page, valid until the next call. The last one ends at the query's end, even if
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

/// The types to filter by; none if nearly all of the store's events are wanted anyway.
std::vector<std::string> types_to_read(Store& store, std::vector<std::string> wanted);

}  // namespace stela::projections
