// Events that only the broker has: the store is an older backup, and lost them.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/uuid.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stela {

/// Whether an event that only the broker has can be imported.
enum class Fit : std::uint8_t {
  fits,
  /// A version before it is neither in the store nor at the broker.
  gap,
  /// The store has another event with its version, or an earlier version that is younger.
  other_history,
  /// A version before it can't be imported.
  after_misfit,
  other_store,
  other_codec,
  /// Its type declares tags, which messages don't carry.
  tagged,
  unreadable,
};

/// An event that only the broker has.
struct StrayEvent {
  /// Empty if the message can't be read, like the other members that describe the event.
  std::string stream = {};
  StreamVersion version = {};
  std::string type = {};
  EventId id = {};
  Timestamp recorded_at = {};
  /// The event's sequence in the store that published it. It gets another one.
  GlobalSequence sequence = {};
  std::int64_t redelivery = 0;
  std::size_t payload_bytes = 0;
  StreamVersion published_before = {};

  /// Where it is at the broker.
  PartitionId partition = {};
  std::string broker_stream = {};
  std::uint64_t broker_sequence = 0;

  Fit fit = Fit::fits;
  /// Why it doesn't fit, or wasn't imported: for people.
  std::string why = {};
};

/// What an import would do.
struct ImportPlan {
  /// In the order in which they were recorded. At most 200,000.
  std::vector<StrayEvent> events = {};
  std::int64_t fitting = 0;
  /// Messages of other writers and other stores, of which the first hundred are in `events`.
  std::int64_t foreign = 0;
  /// The broker may have more: plan again after this import.
  bool is_cut = false;
};

struct AppliedImport {
  std::int64_t imported = 0;
  std::int64_t streams = 0;
  /// Planned events that no longer fit and were left out, and the first thousand of them.
  std::int64_t changed = 0;
  std::vector<StrayEvent> examples = {};
  /// False if it was stopped. Another plan continues.
  bool finished = true;
};

}  // namespace stela
