#include "kept_errors.hpp"

#include "database/database.hpp"
#include "keys/seal.hpp"
#include "operations_sql/keys.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace stela {
namespace {

namespace sql = operations::sql;

/// A column with error texts, and the payload that each is about: a text may quote an opened value.
struct KeptError {
  std::string_view table;
  std::string_view column;
  /// Selects the rows with errors; by an index, if most have none.
  std::string_view rows;
  std::string_view payload;
  /// The payload on PostgreSQL, if it differs.
  std::string_view payload_on_server = payload;
};
constexpr std::string_view of_event = "(SELECT payload FROM events WHERE sequence = kept.sequence)";
constexpr std::string_view of_failing = "(SELECT payload FROM events WHERE sequence = failing)";
constexpr KeptError kept_errors[] = {
    {"outbox_messages", "last_error", "attempts > 0", of_event},
    {"outbox_redeliveries", "last_error", "attempts > 0", of_event},
    {"outbox_parked", "error", "reason <> 'behind'", of_event},
    {"outbox_parked", "failure", "reason <> 'behind'", of_event},
    {"outbox_discarded", "error", "true", of_event},
    {"projections", "error", "failing > 0", of_failing},
    {"projection_parked", "error", "true", of_event},
    {"projection_timers", "error", "state <> 'pending'", "payload"},
    {"projection_timers", "error", "state = 'pending' AND wake_at > due_at", "payload"},
    {"inbox_parked", "error", "true", "payload"},
    // The reason why a projector stopped: "event 72 (…): …".
    {"stela_changes", "detail", "detail LIKE 'event %'",
     "(SELECT payload FROM events WHERE sequence = CAST(substr(kept.detail, 7) AS INTEGER))",
     "(SELECT payload FROM events "
     "WHERE sequence = substring(kept.detail FROM '^event ([0-9]{1,18})')::bigint)"},
};

/// SQL for a payload with fields sealed with these keys, in either codec.
std::string is_sealed(std::string_view payload, std::span<const KeyId> ids, bool on_server) {
  const auto in_hex = [](std::string_view bytes) {
    std::string hex;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      hex.append({"0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]});
    }
    return hex;
  };
  std::string sql = "false";
  for (const KeyId& id : ids) {
    std::string in_binary{'\x01'};
    in_binary += keys::text_of(id.bytes);
    for (const std::string& mark : {"\"~s1." + id.to_string() + '.', in_binary}) {
      const std::string bytes = in_hex(mark);
      sql.append(on_server ? " OR position('\\x" + bytes + "'::bytea IN " : " OR instr(");
      sql.append(payload).append(on_server ? ") > 0" : ", x'" + bytes + "') > 0");
    }
  }
  return sql;
}

}  // namespace

void clear_kept_errors(Store& store, std::span<const KeyId> keys) {
  if (keys.empty()) return;
  // SQLite limits the depth of a condition.
  constexpr std::size_t at_a_time = 100;
  const bool on_server = store.database().is_shared();
  store.database().write([&](database::Connection& connection) {
    for (const KeptError& kept : kept_errors) {
      if (!connection.rows(sql::find_table{.name = kept.table}).step()) continue;
      for (auto left = keys; !left.empty();) {
        const auto ids = left.first(std::min(left.size(), at_a_time));
        left = left.subspan(ids.size());
        std::string sql = "UPDATE ";
        sql.append(kept.table).append(" AS kept SET ").append(kept.column);
        sql.append(" = '(cleared: its subject was forgotten)' WHERE ").append(kept.rows);
        sql.append(" AND ").append(kept.column).append(" <> '' AND (");
        const auto payload = on_server ? kept.payload_on_server : kept.payload;
        connection.execute(sql + is_sealed(payload, ids, on_server) + ')');
      }
    }
  });
}

}  // namespace stela
