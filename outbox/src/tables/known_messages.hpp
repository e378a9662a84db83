// Which events of the store the messages at the broker are of.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace stela::outbox {

/// How many messages are looked up at a time, so that no reader stays for as long as the broker
/// takes.
inline constexpr std::size_t known_page = 1'000;

/// A message is of the event of its sequence, or of one that was imported from its place, if that
/// has its id.
/// Threads: one at a time.
class KnownMessages {
 public:
  /// The sequences of events that were imported, by their places in a stream of the broker's.
  using Imported = std::unordered_map<std::uint64_t, std::int64_t>;

  explicit KnownMessages(Store& store) : store_{store} {}

  /// Before messages of these partitions' stream are looked up.
  void begin(std::span<const PartitionId> partitions);
  const Imported& imported() const noexcept { return imported_; }
  /// The event of each message; 0 if the store doesn't have it.
  std::vector<std::int64_t> find(std::span<const FoundMessage> messages) const;

 private:
  Store& store_;
  Imported imported_;
};

}  // namespace stela::outbox
