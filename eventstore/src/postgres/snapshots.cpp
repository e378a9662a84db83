#include "postgres/snapshots.hpp"

#include "database/checksum.hpp"

#include <array>
#include <string>

namespace stela::postgres {
namespace {

std::int64_t checksum_of(const StreamId& stream, const StoredSnapshot& snapshot,
                         std::int64_t taken_at) {
  return database::checksum_of(
      {snapshot.version.value(), snapshot.sequence.value(), snapshot.state_version, taken_at},
      {stream.name(), snapshot.payload});
}

void log_skipped(const Conventions& conventions, const StreamId& stream) {
  const std::array fields{LogEntry::Field{"stream", stream.name()}};
  conventions.log->write({.level = LogLevel::warning,
                          .name = "snapshot.skipped",
                          .message = "a snapshot doesn't match its checksum; loading from events",
                          .fields = fields});
}

Result find(Connection& connection, const StreamId& stream, StreamVersion to,
            GlobalSequence up_to) {
  Parameters parameters;
  parameters.add(stream.name()).add(to.value()).add(up_to.value());
  return connection.query(
      "SELECT n.version, n.sequence, n.state_version, n.taken_at, n.checksum, n.payload "
      "FROM stela.snapshots AS n JOIN stela.streams AS s ON s.stream = n.stream "
      "WHERE s.name = $1 AND n.version <= $2 AND n.sequence <= $3",
      std::move(parameters), "finding a snapshot");
}

/// One that nobody misses if it is lost.
void run_relaxed(Connection& connection, std::string_view sql, Parameters parameters) {
  Connection::Pipeline pipeline{connection};
  pipeline.add(begin_sql);
  pipeline.add("SELECT set_config('synchronous_commit', 'off', true)");
  pipeline.add(sql, std::move(parameters));
  pipeline.add("COMMIT");
  try {
    check_committed(pipeline.run_all("a snapshot")[3]);
  } catch (...) {
    connection.roll_back();
    throw;
  }
}

}  // namespace

std::optional<StoredSnapshot> find_snapshot(Reading& reading, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to) {
  std::optional<StoredSnapshot> snapshot;
  bool is_intact = true;
  read_durably(reading, [&](Connection& connection) -> std::int64_t {
    snapshot.reset();
    const Result row = find(connection, stream, to, up_to);
    if (row.rows() == 0) return 0;
    snapshot = StoredSnapshot{.version = StreamVersion{row.integer(0, 0)},
                              .sequence = GlobalSequence{row.integer(0, 1)},
                              .state_version = static_cast<int>(row.integer(0, 2)),
                              .payload = std::string{row.bytes(0, 5)}};
    is_intact = row.integer(0, 4) == checksum_of(stream, *snapshot, row.integer(0, 3));
    return snapshot->sequence.value();
  });
  if (is_intact) return snapshot;
  log_skipped(conventions, stream);
  return std::nullopt;
}

void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now) {
  const std::int64_t taken_at = now.time_since_epoch().count();
  Parameters parameters;
  parameters.add(stream.name()).add(snapshot.version.value()).add(snapshot.sequence.value());
  parameters.add(std::int64_t{snapshot.state_version}).add(taken_at);
  parameters.add(checksum_of(stream, snapshot, taken_at)).add_bytes(snapshot.payload);
  run_relaxed(connection,
              "INSERT INTO stela.snapshots AS n (stream, version, sequence, state_version, "
              "taken_at, checksum, payload) "
              "SELECT s.stream, $2, $3, $4, $5, $6, $7 FROM stela.streams AS s WHERE s.name = $1 "
              "ON CONFLICT (stream) DO UPDATE SET version = excluded.version, "
              "sequence = excluded.sequence, state_version = excluded.state_version, "
              "taken_at = excluded.taken_at, checksum = excluded.checksum, "
              "payload = excluded.payload WHERE excluded.version >= n.version",
              std::move(parameters));
}

void drop_snapshot(Connection& connection, const StreamId& stream) {
  Parameters parameters;
  parameters.add(stream.name());
  run_relaxed(connection,
              "DELETE FROM stela.snapshots WHERE stream = "
              "(SELECT s.stream FROM stela.streams AS s WHERE s.name = $1)",
              std::move(parameters));
}

}  // namespace stela::postgres
