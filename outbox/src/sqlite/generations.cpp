#include "sqlite/generations.hpp"

#include "outbox_sql.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace stela::outbox {

using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();

Generation read(const Query& query) {
  return {query.integer(0), query.integer(1), static_cast<int>(query.integer(2))};
}

std::vector<Generation> all_generations(Connection& connection) {
  std::vector<Generation> all;
  Query query = connection.query(sql::generations);
  while (query.step()) all.push_back(read(query));
  return all;
}

}  // namespace

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

  Query waiting = connection.query(sql::first_waiting);
  waiting.step();
  const std::int64_t first = waiting.is_null(0) ? everything : waiting.integer(0);
  const std::int64_t again = waiting.is_null(1) ? everything : waiting.integer(1);
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

}  // namespace stela::outbox
