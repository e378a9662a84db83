// Where an event's messages belong.
#pragma once

#include "sqlite/connection.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/kinds.hpp"

#include <stela/framework/numbers.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstdint>
#include <string>

namespace stela::outbox {

/// Works out partitions from events that are stored already.
/// Threads: one at a time, for one transaction.
class Placement {
 public:
  Placement(sqlite::Connection& connection, sqlite::KindTable& kinds,
            const Partitioner& partitioner) noexcept
      : connection_{connection}, kinds_{kinds}, partitioner_{partitioner} {}

  /// UsageError unless the partitioner is the database's.
  void require_partitioner();
  bool knows_partitioner();

  /// The event's partition among so many. CorruptEvent if the event can't be read, and its key
  /// takes more than its stream.
  PartitionId find(GlobalSequence sequence, std::int64_t stream, int partition_count);

 private:
  sqlite::Connection& connection_;
  sqlite::KindTable& kinds_;
  const Partitioner& partitioner_;
  sqlite::StreamNames names_;
  std::string scratch_;
};

}  // namespace stela::outbox
