// Checks the tables around events: streams, kinds, append ids, groups of appends, snapshots.
#include "care/checks.hpp"
#include "care/laws.hpp"
#include "care/walk.hpp"
#include "database/checksum.hpp"
#include "operations_sql/care.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace stela::care {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::string_view index_advice =
    "the table is the truth: rebuild its index with REINDEX, verify again, and keep a backup";

void report_disorder(Inspection& inspection, std::string_view where, Walked walked) {
  if (walked != Walked::into_disorder) return;
  inspection.report(std::string{where}, "rows are out of order");
}

std::string number_as_text(std::int64_t number) {
  return "stream number " + std::to_string(number);
}

void check_stream(Inspection& inspection, const sql::inspect_streams::Row& row) {
  const std::string where = number_as_text(row.stream());
  try {
    (void)StreamId::parse(row.name());
  } catch (const UsageError& e) {
    inspection.report(where, e.what());
  }
  if (row.in_index() == row.stream()) return;
  inspection.report(where,
                    "the index of names doesn't lead from '" + std::string{row.name()} + "' to it",
                    std::string{index_advice});
}

void check_kind(Inspection& inspection, const sql::inspect_kinds::Row& row) {
  const std::string where = "event kind " + std::to_string(row.kind());
  const bool is_valid = is_valid_category(row.category()) && is_valid_event_name(row.type()) &&
                        row.version() >= 1 &&
                        row.version() <= std::numeric_limits<std::int32_t>::max() &&
                        (row.publishes() == 0 || row.publishes() == 1);
  if (!is_valid) inspection.report(where, "its category, type, version or flag can't be");
  if (row.in_index() == row.kind()) return;
  inspection.report(where, "the index of kinds doesn't lead to it", std::string{index_advice});
}

void check_append_id(Inspection& inspection, const sql::inspect_append_ids::Row& row) {
  const std::int64_t first = row.first_sequence();
  const std::int64_t last = row.last_sequence();
  const std::string where = "append id '" + std::string{row.append_id()} + "'";
  if (row.checksum() != inspection.engine().append_id_checksum(row.append_id(), first, last)) {
    return inspection.report(where, "it doesn't match its checksum");
  }
  const bool is_empty = first == 0 && last == 0;
  if (!is_empty && (first < 1 || first > last || last > row.last_event())) {
    inspection.report(where, "it refers to missing events");
  }
}

void check_snapshot(Inspection& inspection, const sql::inspect_snapshots::Row& row) {
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

Counted check_streams(Inspection& inspection) {
  Counted found{};
  inspection.read([&](Connection& connection) {
    auto last = connection.rows(sql::inspect_last_stream{});
    if (last.step()) found.through = last.stream();
  });
  const Walked walked = walk(
      inspection, smallest,
      [](std::int64_t after) { return sql::inspect_streams{.after = after, .limit = page_rows}; },
      [](const auto& row) { return row.stream(); },
      [&](Connection&, const auto& row) {
        if (row.stream() <= found.through) ++found.count;
        check_stream(inspection, row);
      },
      [&](std::int64_t) {
        inspection.progress(found.count, std::max(found.count, found.through));
      });
  report_disorder(inspection, inspection.engine().whole, walked);
  return found;
}

Counted check_kinds(Inspection& inspection) {
  Counted found{};
  inspection.read([&](Connection& connection) {
    auto kinds = connection.rows(sql::inspect_kinds{});
    for (; kinds.step(); ++found.count) {
      found.through = kinds.kind();
      check_kind(inspection, kinds);
    }
  });
  hold(inspection, laws::kinds_are_numbered);
  inspection.progress(found.count, found.count);
  return found;
}

void check_append_ids(Inspection& inspection) {
  // The table is ordered by the stored bytes.
  using Key = std::pair<std::string, std::string>;
  const Walked walked = walk(
      inspection, Key{},
      [](const Key& after) {
        return sql::inspect_append_ids{.after = after.second, .limit = page_rows};
      },
      [](const auto& row) {
        return Key{std::string{row.bytes()}, std::string{row.append_id()}};
      },
      [&](Connection&, const auto& row) { check_append_id(inspection, row); },
      [&](std::int64_t found) { inspection.progress(found, found); });
  report_disorder(inspection, "table append_ids", walked);
}

void check_append_groups(Inspection& inspection) {
  hold(inspection, laws::groups_have_events);
}

void check_snapshots(Inspection& inspection) {
  const Walked walked = walk(
      inspection, smallest,
      [](std::int64_t after) { return sql::inspect_snapshots{.after = after, .limit = page_rows}; },
      [](const auto& row) { return row.stream(); },
      [&](Connection&, const auto& row) { check_snapshot(inspection, row); },
      [&](std::int64_t found) { inspection.progress(found, found); });
  report_disorder(inspection, inspection.engine().whole, walked);
}

}  // namespace stela::care
