// Finds the partition of an event's messages.
#pragma once

#include "database/database.hpp"

#include <stela/framework/numbers.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace stela::outbox {

/// Computes partitions from stored events.
/// Threads: one at a time, for one transaction.
class Placement {
 public:
  Placement(database::Connection& connection, database::Database& database,
            const Partitioner& partitioner)
      : connection_{connection}, events_{database.make_event_reader()}, partitioner_{partitioner} {}

  /// UsageError unless the partitioner is the database's.
  void require_partitioner();
  bool knows_partitioner();

  /// The event's partition among `partition_count`. CorruptEvent if the event can't be read and its
  /// key needs more than the stream.
  PartitionId find(GlobalSequence sequence, std::int64_t stream, int partition_count);

 private:
  database::Connection& connection_;
  std::unique_ptr<database::EventReader> events_;
  const Partitioner& partitioner_;
  std::string scratch_;
};

}  // namespace stela::outbox
