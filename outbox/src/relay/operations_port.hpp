// The operators' port to the outbox tables: what changes messages and partitions from outside.
#pragma once

#include <stela/framework/numbers.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stela::relay {

/// Each call is one transaction, recorded with who asked for it.
/// Threads: one at a time.
class Operations {
 public:
  virtual ~Operations() = default;

  /// Sends parked messages again, in order: of the stream the first ones up to `through`, and those
  /// that are parked behind them alone. How many.
  virtual std::int64_t retry(std::int64_t stream, GlobalSequence through, std::string_view who) = 0;
  /// Gives a parked message up for good, and sends those again that are parked behind it alone.
  /// False if it isn't parked.
  virtual bool discard(GlobalSequence sequence, std::string_view who) = 0;
  /// Sends published events again, in order. How many.
  virtual std::int64_t republish(std::span<const GlobalSequence> sequences,
                                 std::string_view who) = 0;
  /// Spreads what is appended from now on over another number of partitions.
  virtual void resize(int partition_count, std::string_view who) = 0;
  /// Lets a stopped partition go on, from where the broker stands: at `broker_sequence`.
  virtual void adopt(PartitionId partition, std::optional<std::uint64_t> broker_sequence,
                     std::string_view who) = 0;
};

}  // namespace stela::relay
