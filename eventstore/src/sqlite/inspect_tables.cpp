// The checks of what events hang on and what hangs on events: streams, kinds, append ids,
// snapshots.
#include "sqlite/checksum.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>

#include <limits>

namespace stela::sqlite {
namespace {

constexpr std::int64_t page_rows = 512;
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view reindex_advice =
    "the table is the truth: rebuild its index with REINDEX, verify again, and keep a backup";

std::string stream_number(std::int64_t number) {
  return "stream number " + std::to_string(number);
}

/// Goes through a table whose integer key is column 0 of `sql`, page by page: `look` sees each row,
/// `turn` is called behind each page.
void walk(Inspection& inspection, std::string_view sql, FunctionRef<void(Query&)> look,
          FunctionRef<void()> turn) {
  std::int64_t last = smallest;
  bool more = true;
  while (more) {
    more = false;
    inspection.read([&](Connection& connection) {
      Query query = connection.query(sql);
      query.bind(1, last).bind(2, page_rows);
      std::int64_t rows = 0;
      while (query.step()) {
        if (query.integer(0) <= last) {
          inspection.report("the file", "rows are out of order");
          return;
        }
        last = query.integer(0);
        look(query);
        ++rows;
      }
      more = rows == page_rows && last < largest;
    });
    turn();
  }
}

void check_stream(Inspection& inspection, Query& row) {
  const std::int64_t number = row.integer(0);
  try {
    (void)StreamId::parse(row.text(1));
  } catch (const UsageError& e) {
    inspection.report(stream_number(number), e.what());
  }
  if (row.is_null(2) || row.integer(2) != number) {
    inspection.report(
        stream_number(number),
        "the index of names doesn't lead from '" + std::string{row.text(1)} + "' to it",
        std::string{reindex_advice});
  }
}

void check_kind(Inspection& inspection, Query& row, std::int64_t expected) {
  const std::string where = "event kind " + std::to_string(row.integer(0));
  if (row.integer(0) != expected) {
    inspection.report(where, "event kind " + std::to_string(expected) + " is missing before it");
  }
  const bool is_valid = is_valid_category(row.text(1)) && is_valid_event_name(row.text(2)) &&
                        row.integer(3) >= 1 &&
                        row.integer(3) <= std::numeric_limits<std::int32_t>::max() &&
                        (row.integer(4) == 0 || row.integer(4) == 1);
  if (!is_valid) inspection.report(where, "its category, type, version or flag can't be");
  if (row.is_null(5) || row.integer(5) != row.integer(0)) {
    inspection.report(where, "the index of kinds doesn't lead to it", std::string{reindex_advice});
  }
}

void check_append_id(Inspection& inspection, Query& row, std::int64_t last_event) {
  const std::string_view id = row.text(0);
  const std::int64_t first = row.integer(1);
  const std::int64_t last = row.integer(2);
  const std::string where = "append id '" + std::string{id} + "'";
  if (row.integer(3) != checksum_of({first, last}, {id})) {
    inspection.report(where, "it doesn't match its checksum");
    return;
  }
  const bool is_empty = first == 0 && last == 0;
  if (!is_empty && (first < 1 || first > last || last > last_event)) {
    inspection.report(where, "it stands for events that aren't there");
  }
}

void check_snapshot(Inspection& inspection, Query& row) {
  constexpr std::string_view advice =
      "nothing is lost: drop the snapshot, and it is taken again from the events";
  const std::string where = row.is_null(1) ? "the snapshot of " + stream_number(row.integer(0))
                                           : "the snapshot of '" + std::string{row.text(1)} + "'";
  if (row.is_null(1)) {
    inspection.report(where, "there is no such stream",
                      "nothing is lost: remove it by DELETE FROM snapshots WHERE stream = " +
                          std::to_string(row.integer(0)));
  } else if (row.integer(6) !=
             checksum_of({row.integer(2), row.integer(3), row.integer(4), row.integer(5)},
                         {row.text(1), row.blob(7)})) {
    inspection.report(where, "it doesn't match its checksum", std::string{advice});
  } else if (row.is_null(8) || row.integer(8) != row.integer(0) ||
             row.integer(9) != row.integer(2)) {
    inspection.report(where,
                      "event " + std::to_string(row.integer(3)) + " isn't version " +
                          std::to_string(row.integer(2)) + " of its stream",
                      std::string{advice});
  }
}

}  // namespace

void check_streams(Inspection& inspection) {
  std::int64_t bound = 0;
  inspection.read([&](Connection& connection) {
    bound = connection.integer("SELECT coalesce(max(stream), 0) FROM streams").value_or(0);
  });
  std::int64_t found = 0;
  walk(
      inspection, sql::inspect_streams,
      [&](Query& row) {
        if (row.integer(0) <= bound) ++found;
        check_stream(inspection, row);
      },
      [&] { inspection.progress(found, bound); });
  inspection.read([&](Connection& connection) {
    Query query = connection.query(sql::inspect_stream_index);
    query.bind(1, bound).step();
    if (query.integer(0) != found) {
      inspection.report("table streams",
                        "its index of names has " + std::to_string(query.integer(0)) +
                            " entries for " + std::to_string(found) + " streams",
                        std::string{reindex_advice});
    }
  });
}

void check_kinds(Inspection& inspection) {
  std::int64_t found = 0;
  inspection.read([&](Connection& connection) {
    std::int64_t expected = 1;
    Query query = connection.query(sql::inspect_event_kinds);
    while (query.step()) {
      check_kind(inspection, query, expected);
      expected = query.integer(0) < largest ? query.integer(0) + 1 : largest;
      ++found;
    }
    Query index = connection.query(sql::inspect_event_kind_index);
    index.step();
    if (index.integer(0) != found) {
      inspection.report("table event_kinds",
                        "its index has " + std::to_string(index.integer(0)) + " entries for " +
                            std::to_string(found) + " kinds",
                        std::string{reindex_advice});
    }
  });
  inspection.progress(found, found);
}

void check_append_ids(Inspection& inspection) {
  std::string last;
  std::string last_bytes;
  std::int64_t found = 0;
  bool more = true;
  while (more) {
    more = false;
    inspection.read([&](Connection& connection) {
      const std::int64_t last_event = last_sequence(connection);
      const std::string begin = last;
      Query query = connection.query(sql::inspect_append_ids);
      query.bind(1, begin).bind(2, page_rows + 1);
      std::int64_t rows = 0;
      while (query.step()) {
        ++rows;
        // Each page but the first begins with the row that ended the one before.
        if (found > 0 && query.text(0) == last) continue;
        if (found > 0 && query.blob(4) < last_bytes) {
          inspection.report("table append_ids", "rows are out of order");
          return;
        }
        last = query.text(0);
        last_bytes = query.blob(4);
        check_append_id(inspection, query, last_event);
        ++found;
      }
      more = rows > page_rows;
    });
    inspection.progress(found, found);
  }
}

void check_snapshots(Inspection& inspection) {
  std::int64_t found = 0;
  walk(
      inspection, sql::inspect_snapshots,
      [&](Query& row) {
        check_snapshot(inspection, row);
        ++found;
      },
      [&] { inspection.progress(found, found); });
}

}  // namespace stela::sqlite
