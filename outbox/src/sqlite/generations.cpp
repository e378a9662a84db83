#include "sqlite/generations.hpp"

#include "outbox_sql.hpp"
#include "outbox_sql/partitions.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace stela::outbox {

using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr int max_partitions = 1024;
constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();

Generation read(const Query& query) {
  return {query.integer(0), query.integer(1), static_cast<int>(query.integer(2))};
}

}  // namespace

std::vector<Generation> all_generations(Connection& connection) {
  std::vector<Generation> all;
  Query query = connection.query(sql::generations);
  while (query.step()) all.push_back(read(query));
  return all;
}

Generation current_generation(Connection& connection) {
  Query query = connection.query(sql::current_generation);
  return query.step() ? read(query) : Generation{};
}

Generation generation_of(Connection& connection, GlobalSequence sequence) {
  Generation found;
  for (const Generation& generation : all_generations(connection)) {
    if (generation.first_sequence <= sequence.value()) found = generation;
  }
  return found;
}

std::int64_t open_end(Connection& connection, std::int64_t& known_open) {
  const Generation current = current_generation(connection);
  if (current.number <= 1 || known_open == current.number) return everything;

  auto waiting = connection.rows(sql::first_waiting{});
  waiting.step();
  const std::int64_t first = waiting.sequence().value_or(everything);
  const std::int64_t again = waiting.generation().value_or(everything);
  for (const Generation& generation : all_generations(connection)) {
    // The first that has a predecessor which isn't drained ends what may be published.
    if (generation.number == 1) continue;
    if (first < generation.first_sequence || again < generation.number) {
      return generation.first_sequence;
    }
  }
  known_open = current.number;
  return everything;
}

Generation open_generation(Connection& connection) {
  std::int64_t none_known = 0;
  const std::int64_t end = open_end(connection, none_known);
  if (end == everything) return current_generation(connection);
  Generation open;
  for (const Generation& generation : all_generations(connection)) {
    if (generation.first_sequence < end) open = generation;
  }
  return open;
}

void make_generation(Connection& connection, int partition_count, std::int64_t first_sequence) {
  if (partition_count < 1 || partition_count > max_partitions) {
    throw UsageError{"partition_count is 1 to 1024, not " + std::to_string(partition_count)};
  }
  connection.query(sql::insert_generation)
      .bind(1, current_generation(connection).number + 1)
      .bind(2, first_sequence)
      .bind(3, std::int64_t{partition_count})
      .run();
  for (int index = 0; index < partition_count; ++index) {
    const PartitionId partition = PartitionId::at(index, partition_count);
    connection.run(sql::insert_partition{.partition = partition.number});
  }
}

std::int64_t last_position(Connection& connection, std::int64_t partition) {
  Query query = connection.query(sql::last_position);
  query.bind(1, partition).step();
  return query.integer(0);
}

std::vector<std::int64_t> unknown_partitions(Connection& connection) {
  std::vector<std::int64_t> unknown;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (;;) {
    {
      Query next = connection.query(sql::next_partition_of_messages);
      if (!next.bind(1, last).step()) return unknown;
      last = next.integer(0);
    }
    Query known = connection.query(sql::partition_exists);
    known.bind(1, last).step();
    if (known.integer(0) == 0) unknown.push_back(last);
  }
}

}  // namespace stela::outbox
