#include "sqlite/event_reader.hpp"

#include <limits>
#include <optional>

namespace stela::sqlite {

void EventReader::read(database::Connection& connection, std::span<const std::int64_t> sequences,
                       FunctionRef<bool(const database::EventRow&)> use) {
  if (sequences.empty()) return;
  const std::int64_t first = sequences.front();
  const std::int64_t last = sequences.back();
  auto wanted = sequences.begin();
  const auto is_wanted = [&](std::int64_t sequence) {
    while (*wanted < sequence) ++wanted;
    return *wanted == sequence;
  };
  read_rows(connection, {.first = first, .last = last, .most = last - first + 1}, is_wanted, use);
}

void EventReader::read_range(database::Connection& connection, const database::RowRange& range,
                             FunctionRef<bool(const database::EventRow&)> use) {
  read_rows(
      connection, range, [](std::int64_t) { return true; }, use);
}

void EventReader::read_rows(database::Connection& connection, const database::RowRange& range,
                            FunctionRef<bool(std::int64_t)> is_wanted,
                            FunctionRef<bool(const database::EventRow&)> use) {
  Connection& own = connection_of(connection);
  std::string tags;
  EventRows rows{own, kinds_, names_};
  if (range.with_tags) rows.tags = &tags;
  auto row = own.rows(sql::read_all{.from = range.first, .to = range.last, .limit = range.most});
  while (row.step()) {
    database::EventRow found{row.sequence(), row.stream(), nullptr, {}, {}};
    if (!is_wanted(found.sequence)) continue;
    std::optional<StoredEvent> event;
    try {
      event.emplace(rows.read(row));
      found.event = &*event;
    } catch (const CorruptRow& e) {
      // Only the row is damaged: a failing disk is thrown.
      found.problem = e.what();
      found.fault = e.problem();
    } catch (const CorruptEvent& e) {
      // The event's tags are damaged.
      found.problem = found.fault = e.what();
    }
    if (!use(found)) return;
  }
}

bool EventReader::fill(database::Connection& connection, std::int64_t first, EventPage& page) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  Connection& own = connection_of(connection);
  EventRows rows{own, kinds_, names_};
  auto row = own.rows(sql::read_all{.from = first, .to = last, .limit = last});
  return !rows.fill(page, row);
}

const StreamId& EventReader::stream(database::Connection& connection, std::int64_t number) {
  return names_.find(number, connection_of(connection));
}

}  // namespace stela::sqlite
