#include "event_ids.hpp"

#include <string_view>

namespace stela {
namespace {

constexpr std::string_view insert_sql =
    "INSERT INTO ids (id, sequence) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
constexpr std::string_view find_sql = "SELECT sequence FROM ids WHERE id = ?1";

}  // namespace

// For an empty name, SQLite creates a private database that ends with its connection.
EventIds::EventIds() : connection_{"", {.flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE}} {
  connection_.execute(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;"
      "CREATE TABLE ids (id BLOB PRIMARY KEY, sequence INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
      "BEGIN");
}

std::optional<std::int64_t> EventIds::add(const Uuid& id, std::int64_t sequence) {
  const std::string_view bytes{reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
  connection_.query(insert_sql).bind_blob(1, bytes).bind(2, sequence).run();
  if (sqlite3_changes(connection_.handle()) == 1) return std::nullopt;
  sqlite::Query found = connection_.query(find_sql);
  found.bind_blob(1, bytes).step();
  return found.integer(0);
}

}  // namespace stela
