#include "postgres/snapshots.hpp"

#include "database/checksum.hpp"
#include "postgres_sql/sessions.hpp"
#include "postgres_sql/snapshots.hpp"

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

/// Runs a statement that may be lost in a crash.
template <class Named>
void run_relaxed(Connection& connection, const Named& statement) {
  Connection::Pipeline pipeline{connection};
  pipeline.add(begin_sql);
  pipeline.add(sql::commit_unflushed{});
  pipeline.add(statement);
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
    auto row = connection.rows(
        sql::find_snapshot{.stream = stream.name(), .to = to.value(), .up_to = up_to.value()});
    if (!row.step()) return 0;
    snapshot = StoredSnapshot{.version = StreamVersion{row.version()},
                              .sequence = GlobalSequence{row.sequence()},
                              .state_version = static_cast<int>(row.state_version()),
                              .payload = std::string{row.payload()}};
    is_intact = row.checksum() == checksum_of(stream, *snapshot, row.taken_at());
    return snapshot->sequence.value();
  });
  if (is_intact) return snapshot;
  log_skipped(conventions, stream);
  return std::nullopt;
}

void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now) {
  const std::int64_t taken_at = now.time_since_epoch().count();
  run_relaxed(connection, sql::save_snapshot{.stream = stream.name(),
                                             .version = snapshot.version.value(),
                                             .sequence = snapshot.sequence.value(),
                                             .state_version = snapshot.state_version,
                                             .taken_at = taken_at,
                                             .checksum = checksum_of(stream, snapshot, taken_at),
                                             .payload = snapshot.payload});
}

void drop_snapshot(Connection& connection, const StreamId& stream) {
  run_relaxed(connection, sql::drop_snapshot{.stream = stream.name()});
}

}  // namespace stela::postgres
