#include "sqlite/event_reader.hpp"

#include <limits>
#include <optional>

namespace stela::sqlite {

void EventReader::read(database::Connection& connection, std::span<const std::int64_t> sequences,
                       FunctionRef<bool(const database::EventRow&)> use) {
  if (sequences.empty()) return;
  const std::int64_t first = sequences.front();
  const std::int64_t last = sequences.back();
  Connection& own = connection_of(connection);
  EventRows rows{own, kinds_, names_};
  auto row = own.rows(sql::read_all{.from = first, .to = last, .limit = last - first + 1});
  auto wanted = sequences.begin();
  while (row.step()) {
    database::EventRow found{row.sequence(), row.stream(), nullptr, {}};
    while (*wanted < found.sequence) ++wanted;
    if (*wanted != found.sequence) continue;
    std::optional<StoredEvent> event;
    try {
      event.emplace(rows.read(row));
      found.event = &*event;
    } catch (const CorruptEvent& e) {
      // Only the row itself: what ails the disk ails every row.
      found.problem = e.what();
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
