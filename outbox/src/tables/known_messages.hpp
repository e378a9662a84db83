// Matches messages at the broker with events of the store.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace stela::outbox {

/// How many messages are looked up at a time, so that no read transaction lasts as long as the
/// broker's reading.
inline constexpr std::size_t known_page = 1'000;

/// A message belongs to the event with its sequence, or to the event imported from its place, if
/// the ids match.
/// Threads: one at a time.
class KnownMessages {
 public:
  /// The sequences of imported events by their places in a broker's stream.
  using Imported = std::unordered_map<std::uint64_t, std::int64_t>;

  explicit KnownMessages(Store& store) : store_{store} {}

  /// Call it before looking up messages of these partitions' stream.
  void begin(std::span<const PartitionId> partitions);
  const Imported& imported() const noexcept { return imported_; }
  /// The event of each message; 0 if the store lacks it.
  std::vector<std::int64_t> find(std::span<const FoundMessage> messages) const;

 private:
  Store& store_;
  Imported imported_;
};

}  // namespace stela::outbox
