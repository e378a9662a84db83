// Errors that are kept, with what they quote, behind Stela's back.
#pragma once

#include <string>
#include <vector>

namespace stela::test {

/// SQL that keeps an error of each of the first two events in each of the tables that have any.
inline std::vector<std::string> keep_errors() {
  const std::string quoted = "'no such house: ' || sequence";
  const std::string events = " FROM events WHERE sequence <= 2";
  const std::string partition = "(SELECT min(partition) FROM outbox_partitions)";
  return {
      "INSERT INTO outbox_messages (partition, sequence, stream, attempts, last_error) SELECT " +
          partition + ", sequence, stream, 1, " + quoted + events,
      "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, error, "
      "failure) SELECT stream, sequence, " +
          partition + ", 0, 5, 'attempts', " + quoted + ", " + quoted + events,
      "INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, reason, error) "
      "SELECT sequence, stream, " +
          partition + ", 0, 'attempts', " + quoted + events,
      "INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, "
      "requested_at, attempts, last_error) SELECT " +
          partition + ", 1, sequence, stream, 'retry', 0, 1, " + quoted + events,
      "INSERT INTO projections (name, build, version, kind, state, position, failing, error, "
      "began_at, changed_at) SELECT 'p' || sequence, 1, 1, 'async', 'living', 0, sequence, " +
          quoted + ", 0, 0" + events,
      "INSERT INTO projection_parked (name, build, sequence, state, parked_at, attempts, error) "
      "SELECT 'p1', 1, sequence, 'parked', 0, 5, " +
          quoted + events,
      "INSERT INTO projection_timers (process, key, kind, version, generation, due_at, wake_at, "
      "attempts, error, recurrence, set_at, correlation_id, causation_id, metadata, payload) "
      "SELECT 'p', 'k' || sequence, 'reminder', 1, 1, 0, 1, 1, " +
          quoted + ", '', 0, '', '', '', payload" + events,
      "INSERT INTO stela_changes (at, part, subject, what, who, detail) SELECT recorded_at, "
      "'projections', "
      "'p', 'stopped', 'w', 'event ' || sequence || ' (guest.moved v1): ' || " +
          quoted + events,
      "INSERT INTO inbox_consumers (name, created_at) VALUES ('billing', 0)",
      "INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, subject, "
      "headers, payload, parked_at, attempts, error) SELECT 1, 'SHOP', sequence, 0, 's', '{}', "
      "payload, 0, 5, " +
          quoted + events};
}

/// How many errors quote this event.
inline std::string count_kept_errors(int sequence) {
  std::string sql = "SELECT count(*) FROM (";
  for (const std::string column :
       {"last_error AS e FROM outbox_messages", "error FROM outbox_parked",
        "failure FROM outbox_parked", "error FROM outbox_discarded",
        "last_error FROM outbox_redeliveries", "error FROM projections",
        "error FROM projection_parked", "error FROM projection_timers", "error FROM inbox_parked",
        "substr(detail, 27) FROM stela_changes WHERE what = 'stopped'"}) {
    sql += (sql.ends_with('(') ? "SELECT " : " UNION ALL SELECT ") + column;
  }
  return sql + ") AS kept WHERE e = 'no such house: " + std::to_string(sequence) + "'";
}

}  // namespace stela::test
