// The checks of what events hang on and what hangs on events: streams, kinds, append ids,
// snapshots.
#include "database/checksum.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite_sql/inspection.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>

#include <limits>

namespace stela::sqlite {
namespace {

constexpr std::int64_t table_page_rows = 512;
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view table_index_advice =
    "the table is the truth: rebuild its index with REINDEX, verify again, and keep a backup";

std::string number_as_text(std::int64_t number) {
  return "stream number " + std::to_string(number);
}

/// Goes through a table by the numbers of streams, page by page: `look` sees each row, `turn` is
/// called after each page.
template <class Statement, class Look>
void walk(FileInspection& inspection, Look look, FunctionRef<void()> turn) {
  std::int64_t last = smallest;
  bool more = true;
  while (more) {
    more = false;
    inspection.read([&](Connection& connection) {
      auto row = connection.rows(Statement{.after = last, .limit = table_page_rows});
      std::int64_t rows = 0;
      while (row.step()) {
        if (row.stream() <= last) {
          inspection.report("the file", "rows are out of order");
          return;
        }
        last = row.stream();
        look(row);
        ++rows;
      }
      more = rows == table_page_rows && last < largest;
    });
    turn();
  }
}

void check_stream(FileInspection& inspection, const sql::inspect_streams::Row& row) {
  const std::int64_t number = row.stream();
  try {
    (void)StreamId::parse(row.name());
  } catch (const UsageError& e) {
    inspection.report(number_as_text(number), e.what());
  }
  if (row.in_index() != number) {
    inspection.report(
        number_as_text(number),
        "the index of names doesn't lead from '" + std::string{row.name()} + "' to it",
        std::string{table_index_advice});
  }
}

void check_kind(FileInspection& inspection, const sql::inspect_event_kinds::Row& row,
                std::int64_t expected) {
  const std::string where = "event kind " + std::to_string(row.kind());
  if (row.kind() != expected) {
    inspection.report(where, "event kind " + std::to_string(expected) + " is missing before it");
  }
  const bool is_valid = is_valid_category(row.category()) && is_valid_event_name(row.type()) &&
                        row.version() >= 1 &&
                        row.version() <= std::numeric_limits<std::int32_t>::max() &&
                        (row.publishes() == 0 || row.publishes() == 1);
  if (!is_valid) inspection.report(where, "its category, type, version or flag can't be");
  if (row.in_index() != row.kind()) {
    inspection.report(where, "the index of kinds doesn't lead to it",
                      std::string{table_index_advice});
  }
}

void check_append_id(FileInspection& inspection, const sql::inspect_append_ids::Row& row,
                     std::int64_t last_event) {
  const std::string_view id = row.append_id();
  const std::int64_t first = row.first_sequence();
  const std::int64_t last = row.last_sequence();
  const std::string where = "append id '" + std::string{id} + "'";
  if (row.checksum() != database::checksum_of({first, last}, {id})) {
    inspection.report(where, "it doesn't match its checksum");
    return;
  }
  const bool is_empty = first == 0 && last == 0;
  if (!is_empty && (first < 1 || first > last || last > last_event)) {
    inspection.report(where, "it refers to missing events");
  }
}

void check_snapshot(FileInspection& inspection, const sql::inspect_snapshots::Row& row) {
  constexpr std::string_view advice =
      "nothing is lost: drop the snapshot, and it is taken again from the events";
  const std::optional<std::string_view> name = row.name();
  const std::string where =
      "the snapshot of " + (name ? "'" + std::string{*name} + "'" : number_as_text(row.stream()));
  const std::int64_t taken_at = row.taken_at().time_since_epoch().count();
  if (!name) {
    inspection.report(where, "there is no such stream",
                      "nothing is lost: remove it by DELETE FROM snapshots WHERE stream = " +
                          std::to_string(row.stream()));
  } else if (row.checksum() !=
             database::checksum_of({row.version(), row.sequence(), row.state_version(), taken_at},
                                   {*name, row.payload()})) {
    inspection.report(where, "it doesn't match its checksum", std::string{advice});
  } else if (row.event_stream() != row.stream() || row.event_version() != row.version()) {
    inspection.report(where,
                      "event " + std::to_string(row.sequence()) + " isn't version " +
                          std::to_string(row.version()) + " of its stream",
                      std::string{advice});
  }
}

}  // namespace

void check_streams(FileInspection& inspection) {
  std::int64_t bound = 0;
  inspection.read([&](Connection& connection) {
    bound = connection.integer("SELECT coalesce(max(stream), 0) FROM streams").value_or(0);
  });
  std::int64_t found = 0;
  walk<sql::inspect_streams>(
      inspection,
      [&](const auto& row) {
        if (row.stream() <= bound) ++found;
        check_stream(inspection, row);
      },
      [&] { inspection.progress(found, bound); });
  inspection.read([&](Connection& connection) {
    auto index = connection.rows(sql::inspect_stream_index{.to = bound});
    index.step();
    if (index.entries() != found) {
      inspection.report("table streams",
                        "its index of names has " + std::to_string(index.entries()) +
                            " entries for " + std::to_string(found) + " streams",
                        std::string{table_index_advice});
    }
  });
}

void check_kinds(FileInspection& inspection) {
  std::int64_t found = 0;
  inspection.read([&](Connection& connection) {
    std::int64_t expected = 1;
    auto kinds = connection.rows(sql::inspect_event_kinds{});
    while (kinds.step()) {
      check_kind(inspection, kinds, expected);
      expected = kinds.kind() < largest ? kinds.kind() + 1 : largest;
      ++found;
    }
    auto index = connection.rows(sql::inspect_event_kind_index{});
    index.step();
    if (index.entries() != found) {
      inspection.report("table event_kinds",
                        "its index has " + std::to_string(index.entries()) + " entries for " +
                            std::to_string(found) + " kinds",
                        std::string{table_index_advice});
    }
  });
  inspection.progress(found, found);
}

void check_append_ids(FileInspection& inspection) {
  std::string last;
  std::string last_bytes;
  std::int64_t found = 0;
  bool more = true;
  while (more) {
    more = false;
    inspection.read([&](Connection& connection) {
      const std::int64_t last_event = last_sequence(connection);
      const std::string begin = last;
      auto ids =
          connection.rows(sql::inspect_append_ids{.from = begin, .limit = table_page_rows + 1});
      std::int64_t rows = 0;
      while (ids.step()) {
        ++rows;
        // Each page but the first begins with the row that ended the one before.
        if (found > 0 && ids.append_id() == last) continue;
        if (found > 0 && ids.bytes() < last_bytes) {
          inspection.report("table append_ids", "rows are out of order");
          return;
        }
        last = ids.append_id();
        last_bytes = ids.bytes();
        check_append_id(inspection, ids, last_event);
        ++found;
      }
      more = rows > table_page_rows;
    });
    inspection.progress(found, found);
  }
}

void check_snapshots(FileInspection& inspection) {
  std::int64_t found = 0;
  walk<sql::inspect_snapshots>(
      inspection,
      [&](const auto& row) {
        check_snapshot(inspection, row);
        ++found;
      },
      [&] { inspection.progress(found, found); });
}

}  // namespace stela::sqlite
