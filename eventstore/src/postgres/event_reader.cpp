#include "postgres/event_reader.hpp"

#include "postgres/tags.hpp"
#include "postgres_sql/streams.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace stela::postgres {
namespace {

constexpr std::size_t most_sequences = 1024;

/// Passes the rows to `use` until it returns false. Returns false in that case.
bool hand_on(EventRows& reader, const Result& rows,
             FunctionRef<bool(const database::EventRow&)> use) {
  for (int row = 0; row < rows.rows(); ++row) {
    database::EventRow found{
        EventRows::sequence_of(rows, row), EventRows::stream_number_of(rows, row), nullptr, {}, {}};
    std::optional<StoredEvent> event;
    try {
      event.emplace(reader.read(rows, row));
      found.event = &*event;
    } catch (const CorruptRow& e) {
      found.problem = e.what();
      found.fault = e.problem();
    }
    if (!use(found)) return false;
  }
  return true;
}

Result find(Connection& connection, std::span<const std::int64_t> sequences) {
  static const std::string sql = page_sql("e.sequence = ANY ($1)", "sequence", "$2");
  Array wanted = Array::of_int8();
  for (const std::int64_t sequence : sequences) wanted.add(sequence);
  Parameters parameters;
  parameters.add(wanted).add(static_cast<std::int64_t>(sequences.size()));
  return connection.query(sql, std::move(parameters), "reading events by their sequences");
}

}  // namespace

void EventReader::read(database::Connection& connection, std::span<const std::int64_t> sequences,
                       FunctionRef<bool(const database::EventRow&)> use) {
  EventRows reader{kinds_, names_};
  while (!sequences.empty()) {
    const auto wanted = sequences.first(std::min(sequences.size(), most_sequences));
    const Result rows = find(connection_of(connection), wanted);
    if (!hand_on(reader, rows, use)) return;
    // Events that didn't fit into the answer come with the next one; missing events never come.
    const auto end = rows.rows() > 0 && EventRows::ends_early(rows)
                         ? std::upper_bound(wanted.begin(), wanted.end(),
                                            EventRows::sequence_of(rows, rows.rows() - 1))
                         : wanted.end();
    sequences = sequences.subspan(static_cast<std::size_t>(end - wanted.begin()));
  }
}

void EventReader::read_range(database::Connection& connection, const database::RowRange& range,
                             FunctionRef<bool(const database::EventRow&)> use) {
  static const std::string sql = page_sql("e.sequence BETWEEN $1 AND $2", "sequence", "$3");
  Parameters parameters;
  parameters.add(range.first).add(range.last).add(range.most);
  const Result rows = connection_of(connection).query(sql, std::move(parameters), "reading events");
  EventRows reader{kinds_, names_};
  std::map<std::int64_t, std::string> tags;
  if (range.with_tags) {
    Array sequences = EventRows::sequences_of(rows);
    tags = read_tags(connection_of(connection), sequences);
    reader.tags = &tags;
  }
  hand_on(reader, rows, use);
}

bool EventReader::fill(database::Connection& connection, std::int64_t first, EventPage& page) {
  static const std::string sql = page_sql("e.sequence >= $1", "sequence", "$2");
  constexpr std::int64_t wanted = most_sequences;
  Parameters parameters;
  parameters.add(first).add(wanted);
  const Result rows = connection_of(connection).query(sql, std::move(parameters), "reading events");
  EventRows reader{kinds_, names_};
  return !reader.fill(page, rows, wanted);
}

const StreamId& EventReader::stream(database::Connection& connection, std::int64_t number) {
  auto found = connection_of(connection).rows(sql::stream{.stream = number});
  if (!found.step()) {
    throw CorruptEvent{"there is no stream of number " + std::to_string(number)};
  }
  try {
    return names_.find(found.name());
  } catch (const UsageError& e) {
    throw CorruptEvent{"stream " + std::to_string(number) + " has an invalid name: " + e.what()};
  }
}

}  // namespace stela::postgres
