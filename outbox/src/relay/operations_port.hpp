// The operators' port to the outbox tables, which changes messages and partitions.
#pragma once

#include <stela/framework/numbers.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stela::relay {

/// Each call is one transaction, recorded with the operator's name.
/// Threads: one at a time.
class Operations {
 public:
  virtual ~Operations() = default;

  /// Sends parked messages again, in order: the stream's first ones up to `through`, and those
  /// parked only because of them. Returns how many.
  virtual std::int64_t retry(std::int64_t stream, GlobalSequence through, std::string_view who) = 0;
  /// Gives a parked message up for good, and resends those parked only because of it. False if it
  /// isn't parked.
  virtual bool discard(GlobalSequence sequence, std::string_view who) = 0;
  /// Sends published events again, in order. Returns how many.
  virtual std::int64_t republish(std::span<const GlobalSequence> sequences,
                                 std::string_view who) = 0;
  /// Spreads events appended from now on over another number of partitions.
  virtual void resize(int partition_count, std::string_view who) = 0;
  /// Resumes a stopped partition from the broker's contents, at `broker_sequence`.
  virtual void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
                     std::string_view who) = 0;
};

}  // namespace stela::relay
