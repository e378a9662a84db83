#include "sqlite/transaction.hpp"

#include "sqlite/checksum.hpp"
#include "sqlite_sql.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/framework/append_check.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/metadata.hpp>

#include <array>

namespace stela::sqlite {
AppendResult OpenTransaction::append(const AppendRequest& request) {
  check_append(request);
  work_.metadata = metadata::encode(request.context);
  return writer_.append_inside(request, work_);
}

EventRange OpenTransaction::read_stream(const StreamId& stream, const StreamQuery& query) {
  return EventRange{sqlite::read_stream(*this, writer_.kinds(), stream, query)};
}

std::optional<StoredSnapshot> OpenTransaction::find_snapshot(const StreamId& stream,
                                                             StreamVersion to,
                                                             GlobalSequence up_to) {
  return sqlite::find_snapshot(connection(), conventions(), stream, to, up_to);
}

void OpenTransaction::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  work_.snapshots.emplace_back(stream, snapshot);
}

void OpenTransaction::drop_snapshot(const StreamId& stream) {
  work_.snapshots.emplace_back(stream, std::nullopt);
}

OpenTransaction& open_transaction(Transaction& transaction) {
  auto* const open = dynamic_cast<OpenTransaction*>(&transaction);
  if (open == nullptr) throw UsageError{"this transaction isn't one of an SQLite store"};
  return *open;
}

sqlite3* handle(Transaction& transaction) {
  return open_transaction(transaction).lend();
}

std::optional<StoredSnapshot> find_snapshot(Connection& connection, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to) {
  Query query = connection.query(sql::find_snapshot);
  query.bind(1, stream.name()).bind(2, to.value()).bind(3, up_to.value());
  if (!query.step()) return std::nullopt;
  StoredSnapshot snapshot{.version = StreamVersion{query.integer(0)},
                          .sequence = GlobalSequence{query.integer(1)},
                          .state_version = static_cast<int>(query.integer(2)),
                          .payload = std::string{query.blob(5)}};
  const std::int64_t expected =
      checksum_of({query.integer(0), query.integer(1), query.integer(2), query.integer(3)},
                  {stream.name(), snapshot.payload});
  if (query.integer(4) == expected) return snapshot;
  const std::array fields{LogEntry::Field{"stream", stream.name()}};
  conventions.log->write({.level = LogLevel::warning,
                          .name = "snapshot.skipped",
                          .message = "a snapshot doesn't match its checksum; loading from events",
                          .fields = fields});
  return std::nullopt;
}

void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now) {
  const std::int64_t version = snapshot.version.value();
  const std::int64_t sequence = snapshot.sequence.value();
  const std::int64_t taken_at = now.time_since_epoch().count();
  connection.query(sql::save_snapshot)
      .bind(1, stream.name())
      .bind(2, version)
      .bind(3, sequence)
      .bind(4, std::int64_t{snapshot.state_version})
      .bind(5, taken_at)
      .bind(6, checksum_of({version, sequence, snapshot.state_version, taken_at},
                           {stream.name(), snapshot.payload}))
      .bind_blob(7, snapshot.payload)
      .run();
}

}  // namespace stela::sqlite
