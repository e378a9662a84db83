#include "sqlite/transaction.hpp"

#include "database/checksum.hpp"
#include "ledger/cursor.hpp"
#include "sqlite/pages.hpp"
#include "sqlite_sql/snapshots.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

#include <array>

namespace stela::sqlite {
AppendResult OpenTransaction::append(const AppendRequest& request) {
  check_append(request, conventions());
  work_.metadata = metadata::encode(request.context);
  return writer_.append_inside(request, work_);
}

EventRange OpenTransaction::read_stream(const StreamId& stream, const StreamQuery& query) {
  return ledger::read_stream(make_pages(*this, writer_.kinds()), stream, query);
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

sqlite3* handle(Transaction& transaction) {
  auto* const open = dynamic_cast<OpenTransaction*>(&transaction);
  if (open == nullptr) throw UsageError{"this transaction isn't one of an SQLite store"};
  return open->lend();
}

std::optional<StoredSnapshot> find_snapshot(Connection& connection, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to) {
  auto row = connection.rows(
      sql::find_snapshot{.name = stream.name(), .to = to.value(), .up_to = up_to.value()});
  if (!row.step()) return std::nullopt;
  StoredSnapshot snapshot{.version = StreamVersion{row.version()},
                          .sequence = GlobalSequence{row.sequence()},
                          .state_version = static_cast<int>(row.state_version()),
                          .payload = std::string{row.payload()}};
  const std::int64_t taken_at = row.taken_at().time_since_epoch().count();
  const std::int64_t expected =
      database::checksum_of({row.version(), row.sequence(), row.state_version(), taken_at},
                            {stream.name(), snapshot.payload});
  if (row.checksum() == expected) return snapshot;
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
  connection.run(sql::save_snapshot{
      .name = stream.name(),
      .version = version,
      .sequence = sequence,
      .state_version = snapshot.state_version,
      .taken_at = now,
      .checksum = database::checksum_of({version, sequence, snapshot.state_version, taken_at},
                                        {stream.name(), snapshot.payload}),
      .payload = snapshot.payload});
}

}  // namespace stela::sqlite
