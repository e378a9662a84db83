#include "tables/generations.hpp"

#include "outbox_sql/partitions.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace stela::outbox {

using database::Connection;

namespace {

constexpr int max_partitions = 1024;
constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();

Generation generation_of(const sql::generation_row& row) {
  return {.number = row.generation(),
          .first_sequence = row.first_sequence(),
          .partition_count = static_cast<int>(row.partition_count())};
}

}  // namespace

std::vector<Generation> all_generations(Connection& connection) {
  std::vector<Generation> all;
  auto row = connection.rows(sql::generations{});
  while (row.step()) all.push_back(generation_of(row));
  return all;
}

Generation current_generation(Connection& connection) {
  auto row = connection.rows(sql::current_generation{});
  return row.step() ? generation_of(row) : Generation{};
}

Generation generation_of(Connection& connection, GlobalSequence sequence) {
  Generation found;
  for (const Generation& generation : all_generations(connection)) {
    if (generation.first_sequence <= sequence.value()) found = generation;
  }
  return found;
}

std::int64_t open_end(Connection& connection, const std::vector<Generation>& all,
                      std::int64_t& known_open) {
  if (all.size() <= 1 || known_open == all.back().number) return everything;

  auto waiting = connection.rows(sql::first_waiting{});
  waiting.step();
  const std::int64_t first = waiting.sequence().value_or(everything);
  const std::int64_t again = waiting.generation().value_or(everything);
  for (const Generation& generation : all) {
    // The first generation with an undrained predecessor limits publishing.
    if (generation.number == 1) continue;
    if (first < generation.first_sequence || again < generation.number) {
      return generation.first_sequence;
    }
  }
  known_open = all.back().number;
  return everything;
}

std::int64_t last_event(Connection& connection) {
  auto row = connection.rows(sql::last_event{});
  row.step();
  return row.sequence();
}

Generation open_generation(Connection& connection) {
  std::int64_t none_known = 0;
  const std::vector<Generation> all = all_generations(connection);
  const std::int64_t end = open_end(connection, all, none_known);
  Generation open;
  for (const Generation& generation : all) {
    if (end == everything || generation.first_sequence < end) open = generation;
  }
  return open;
}

void make_generation(Connection& connection, int partition_count, std::int64_t first_sequence) {
  if (partition_count < 1 || partition_count > max_partitions) {
    throw UsageError{"partition_count is 1 to 1024, not " + std::to_string(partition_count)};
  }
  connection.run(sql::insert_generation{.generation = current_generation(connection).number + 1,
                                        .first_sequence = first_sequence,
                                        .partition_count = partition_count});
  for (int index = 0; index < partition_count; ++index) {
    const PartitionId partition = PartitionId::at(index, partition_count);
    connection.run(sql::insert_partition{.partition = partition.number});
  }
}

std::vector<std::int64_t> unknown_partitions(Connection& connection) {
  std::vector<std::int64_t> unknown;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    {
      auto next = connection.rows(sql::next_partition_of_messages{.after = last});
      next.step();
      if (!next.partition()) return unknown;
      last = *next.partition();
    }
    auto known = connection.rows(sql::partition_exists{.partition = last});
    known.step();
    if (!known.is_there()) unknown.push_back(last);
  }
}

}  // namespace stela::outbox
