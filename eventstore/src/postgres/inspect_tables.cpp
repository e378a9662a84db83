// The checks of what events hang on and what hangs on events: streams, kinds, append ids, groups,
// snapshots.
#include "database/checksum.hpp"
#include "postgres/checksums.hpp"
#include "postgres/inspection.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>

#include <string>

namespace stela::postgres {
namespace {

constexpr std::int64_t table_page_rows = 1024;

std::string number_as_text(std::int64_t number) {
  return "stream number " + std::to_string(number);
}

/// Goes through a table by its key, page by page: `sql` takes the last key and a limit. `look` sees
/// each row.
template <class Key, class Look>
void walk(ServerInspection& inspection, std::string_view sql, Key last, Look look) {
  std::int64_t found = 0;
  bool more = true;
  while (more) {
    more = false;
    inspection.read([&](Connection& connection) {
      Parameters parameters;
      const Key from = last;
      parameters.add(from).add(table_page_rows);
      const Result rows = connection.query(sql, std::move(parameters), "reading a table");
      for (int row = 0; row < rows.rows(); ++row) last = look(rows, row);
      found += rows.rows();
      more = rows.rows() == table_page_rows;
    });
    inspection.progress(found, found);
  }
}

void check_kind(ServerInspection& inspection, const Result& rows, int row, std::int64_t expected) {
  const std::string where = "event kind " + std::to_string(rows.integer(row, 0));
  if (rows.integer(row, 0) != expected) {
    inspection.report(where, "event kind " + std::to_string(expected) + " is missing before it");
  }
  const bool is_valid = is_valid_category(rows.bytes(row, 1)) &&
                        is_valid_event_name(rows.bytes(row, 2)) && rows.integer(row, 3) >= 1;
  if (!is_valid) inspection.report(where, "its category, type or version can't be");
}

void check_append_id(ServerInspection& inspection, const Result& rows, int row) {
  const std::string id{rows.bytes(row, 0)};
  const std::int64_t first = rows.integer(row, 1);
  const std::int64_t last = rows.integer(row, 2);
  const std::string where = "append id '" + id + "'";
  if (rows.integer(row, 3) != id_checksum(id, first, last)) {
    return inspection.report(where, "it doesn't match its checksum");
  }
  const bool is_empty = first == 0 && last == 0;
  if (!is_empty && (first < 1 || first > last || last > rows.integer(row, 4))) {
    inspection.report(where, "it refers to missing events");
  }
}

void check_snapshot(ServerInspection& inspection, const Result& rows, int row) {
  constexpr std::string_view advice =
      "nothing is lost: drop the snapshot, and it is taken again from the events";
  const std::int64_t stream = rows.integer(row, 0);
  const std::int64_t version = rows.integer(row, 2);
  const std::int64_t sequence = rows.integer(row, 3);
  const std::string name{rows.bytes(row, 1)};
  const bool has_name = !rows.is_null(row, 1);
  const std::string where =
      "the snapshot of " + (has_name ? "'" + name + "'" : number_as_text(stream));
  if (!has_name) {
    inspection.report(where, "there is no such stream",
                      "nothing is lost: remove it by DELETE FROM snapshots WHERE stream = " +
                          std::to_string(stream));
  } else if (rows.integer(row, 6) !=
             database::checksum_of({version, sequence, rows.integer(row, 4), rows.integer(row, 5)},
                                   {name, rows.bytes(row, 7)})) {
    inspection.report(where, "it doesn't match its checksum", std::string{advice});
  } else if (rows.integer(row, 8) != stream || rows.integer(row, 9) != version) {
    inspection.report(where,
                      "event " + std::to_string(sequence) + " isn't version " +
                          std::to_string(version) + " of its stream",
                      std::string{advice});
  }
}

}  // namespace

void check_streams(ServerInspection& inspection) {
  walk(inspection,
       "SELECT stream, name FROM stela.streams WHERE stream > $1 ORDER BY stream LIMIT $2",
       std::int64_t{-1}, [&](const Result& rows, int row) {
         try {
           (void)StreamId::parse(rows.bytes(row, 1));
         } catch (const UsageError& e) {
           inspection.report(number_as_text(rows.integer(row, 0)), e.what());
         }
         return rows.integer(row, 0);
       });
}

void check_kinds(ServerInspection& inspection) {
  std::int64_t expected = 1;
  walk(inspection,
       "SELECT kind, category, type, version FROM stela.event_kinds WHERE kind > $1 "
       "ORDER BY kind LIMIT $2",
       std::int64_t{-1}, [&](const Result& rows, int row) {
         check_kind(inspection, rows, row, expected);
         expected = rows.integer(row, 0) + 1;
         return rows.integer(row, 0);
       });
}

void check_append_ids(ServerInspection& inspection) {
  walk(inspection,
       "SELECT append_id, first_sequence, last_sequence, checksum, "
       "(SELECT coalesce(max(e.sequence), 0) FROM stela.events AS e) "
       "FROM stela.append_ids WHERE append_id > $1 ORDER BY append_id LIMIT $2",
       std::string{}, [&](const Result& rows, int row) {
         check_append_id(inspection, rows, row);
         return std::string{rows.bytes(row, 0)};
       });
}

void check_append_groups(ServerInspection& inspection) {
  inspection.read([&](Connection& connection) {
    const Result rows = connection.query(
        "SELECT g.group_id::text FROM stela.append_groups AS g WHERE NOT g.is_void "
        "AND g.last_sequence > (SELECT coalesce(max(e.sequence), 0) FROM stela.events AS e) "
        "LIMIT 100",
        {}, "reading the groups of appends");
    for (int row = 0; row < rows.rows(); ++row) {
      inspection.report("append group " + std::string{rows.bytes(row, 0)},
                        "it refers to missing events");
    }
  });
}

void check_snapshots(ServerInspection& inspection) {
  walk(inspection,
       "SELECT n.stream, s.name, n.version, n.sequence, n.state_version, n.taken_at, n.checksum, "
       "n.payload, e.stream, e.version FROM stela.snapshots AS n "
       "LEFT JOIN stela.streams AS s ON s.stream = n.stream "
       "LEFT JOIN stela.events AS e ON e.sequence = n.sequence "
       "WHERE n.stream > $1 ORDER BY n.stream LIMIT $2",
       std::int64_t{-1}, [&](const Result& rows, int row) {
         check_snapshot(inspection, rows, row);
         return rows.integer(row, 0);
       });
}

}  // namespace stela::postgres
