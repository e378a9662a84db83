// Generations of partitions in the database.
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

  /// Whether `partition` is in this generation.
  bool has(PartitionId partition) const noexcept {
    return partition_count == 1 ? partition.number == 0
                                : partition.number >= 1 && partition.number <= partition_count;
  }
};

/// The newest generation, which appended events belong to. Number 0 if there is none yet.
Generation current_generation(database::Connection& connection);

/// The generation in which this sequence was appended.
Generation generation_of(database::Connection& connection, GlobalSequence sequence);

std::vector<Generation> all_generations(database::Connection& connection);

/// Adds the next generation and its partitions. UsageError if there can't be so many.
void make_generation(database::Connection& connection, int partition_count,
                     std::int64_t first_sequence);

/// Missing partitions that have pending messages: rows are damaged.
std::vector<std::int64_t> unknown_partitions(database::Connection& connection);

/// The sequence of the store's last event; 0 if there is none.
std::int64_t last_event(database::Connection& connection);

/// The oldest generation with something left to publish; the newest if none has.
Generation open_generation(database::Connection& connection);

/// The sequence before which messages may be published: the start of the first generation whose
/// predecessors have something left to publish; the largest number if there is none. `known_open`
/// is the newest generation already found open: it stays open.
std::int64_t open_end(database::Connection& connection, const std::vector<Generation>& all,
                      std::int64_t& known_open);

}  // namespace stela::outbox
