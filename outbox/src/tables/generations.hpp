// Generations of partitions, as the database has them.
#pragma once

#include "database/connection.hpp"

#include <stela/framework/numbers.hpp>
#include <stela/outbox/partitioner.hpp>

#include <cstdint>
#include <vector>

namespace stela::outbox {

struct Generation {
  std::int64_t number = 0;
  std::int64_t first_sequence = 0;
  int partition_count = 0;

  /// True if `partition` is one of its own.
  bool has(PartitionId partition) const noexcept {
    return partition_count == 1 ? partition.number == 0
                                : partition.number >= 1 && partition.number <= partition_count;
  }
};

/// The newest one: what is appended now belongs to it. Number 0 if there is none yet.
Generation current_generation(database::Connection& connection);

/// The one that this sequence was appended under.
Generation generation_of(database::Connection& connection, GlobalSequence sequence);

std::vector<Generation> all_generations(database::Connection& connection);

/// Adds the next one, with its partitions. UsageError if there can't be so many.
void make_generation(database::Connection& connection, int partition_count,
                     std::int64_t first_sequence);

/// Partitions that messages wait in, and that don't exist: rows are damaged.
std::vector<std::int64_t> unknown_partitions(database::Connection& connection);

/// The sequence of the last event of the store; 0 if there is none.
std::int64_t last_event(database::Connection& connection);

/// The oldest generation that still has something to publish; the newest if none has.
Generation open_generation(database::Connection& connection);

/// The sequence before which messages may be published: where the first generation begins whose
/// predecessors still have something to publish; the largest number if none has. `known_open` is
/// the newest generation that was found open before: it stays so.
std::int64_t open_end(database::Connection& connection, const std::vector<Generation>& all,
                      std::int64_t& known_open);

}  // namespace stela::outbox
