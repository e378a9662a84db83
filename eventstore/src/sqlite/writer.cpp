#include "sqlite/writer.hpp"

#include "sqlite/checksum.hpp"
#include "sqlite/failure.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace stela::sqlite {
namespace {

constexpr std::string_view begin_sql = "BEGIN IMMEDIATE";
constexpr std::string_view commit_sql = "COMMIT";
constexpr std::string_view savepoint_sql = "SAVEPOINT member";
constexpr std::string_view release_sql = "RELEASE member";
constexpr std::string_view roll_back_to_sql = "ROLLBACK TO member";

std::string_view bytes_of(const Uuid& id) {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

WriteWork& work_of(CommitQueue::Ticket* ticket) {
  return *static_cast<WriteWork*>(ticket);
}

}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection, std::unique_ptr<WriteLock> lock,
               KindTable& kinds, const Settings& settings)
    : connection_{std::move(connection)},
      lock_{std::move(lock)},
      kinds_{kinds},
      settings_{settings},
      ids_{settings.random != nullptr ? UuidGenerator{*settings.random} : UuidGenerator{}},
      checkpoint_at_{settings.checkpoint_pages} {
  const auto on_commit = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Writer*>(self)->wal_pages_ = pages;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(connection_->handle(), on_commit, this);
  set_synchronous(false);
}

Writer::~Writer() {
  close();
}

void Writer::run(WriteWork& work) {
  if (queue_.is_leading()) {
    throw UsageError{
        "a store was written to from inside its own transaction; save and append through the "
        "Transaction that was handed in"};
  }
  queue_.submit(work, [this](auto group) { execute(group); });
  if (work.error) std::rethrow_exception(work.error);
}

void Writer::read(FunctionRef<void(Connection&)> work) {
  if (queue_.is_leading()) return work(*connection_);
  WriteWork ticket;
  ticket.exclusive = true;
  queue_.submit(ticket, [&](auto) {
    try {
      work(*connection_);
    } catch (...) {
      ticket.error = std::current_exception();
    }
  });
  if (ticket.error) std::rethrow_exception(ticket.error);
}

void Writer::run_alone(FunctionRef<void(Connection&)> work) {
  read([&](Connection& connection) {
    const WriteLockGuard guard{*lock_, settings_.busy_timeout};
    known_ = false;
    work(connection);
  });
}

void Writer::run_statements(FunctionRef<void(Connection&)> statements, bool needs_no_sync) {
  WriteWork work;
  work.exclusive = true;
  work.statements = &statements;
  work.needs_no_sync = needs_no_sync;
  run(work);
}

void Writer::execute(std::span<CommitQueue::Ticket* const> group) noexcept {
  try {
    if (!failure_.empty()) throw StoreFailed{failure_};
    const WriteLockGuard guard{*lock_, settings_.busy_timeout};
    execute_in_transaction(group);
    checkpoint_if_due();
  } catch (...) {
    for (CommitQueue::Ticket* const member : group) {
      if (!work_of(member).error) work_of(member).error = std::current_exception();
    }
  }
}

void Writer::execute_in_transaction(std::span<CommitQueue::Ticket* const> group) {
  begin(work_of(group.front()).needs_no_sync && group.size() == 1);
  try {
    for (CommitQueue::Ticket* const member : group) run_member(work_of(member), group.size() > 1);
    if (group.size() == 1 && work_of(group.front()).error) return roll_back();
    commit();
  } catch (...) {
    roll_back();
    throw;
  }
}

void Writer::run_member(WriteWork& work, bool in_group) {
  if (!in_group) {
    try {
      carry_out(work);
    } catch (...) {
      work.error = std::current_exception();
    }
    return;
  }
  const Mark before = mark();
  connection_->query(savepoint_sql).run();
  try {
    carry_out(work);
  } catch (...) {
    work.error = std::current_exception();
    // Some errors end the whole transaction; then it is everybody's.
    if (!connection_->in_transaction()) throw;
    connection_->query(roll_back_to_sql).run();
    go_back_to(before);
  }
  connection_->query(release_sql).run();
}

void Writer::carry_out(WriteWork& work) {
  if (work.request != nullptr) {
    work.result = append_now(*work.request, work);
  } else if (work.statements != nullptr) {
    (*work.statements)(*connection_);
  } else {
    OpenTransaction transaction{*this, work};
    (*work.user)(transaction);
    if (!connection_->in_transaction()) {
      throw UsageError{
          "the work ended the transaction that it was called in; what it did before is committed "
          "or rolled back as it chose"};
    }
  }
}

// --- the transaction

void Writer::set_synchronous(bool without_sync) {
  // FULL syncs the log at each commit, NORMAL only around checkpoints.
  const bool full = settings_.durability == Durability::full && !without_sync;
  connection_->execute(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  without_sync_ = without_sync;
}

void Writer::begin(bool without_sync) {
  if (without_sync != without_sync_) set_synchronous(without_sync);
  connection_->query(begin_sql).run();
  now_ = settings_.clock->now();
  const unsigned version = connection_->data_version();
  if (!known_ || version != seen_version_) {
    known_ = false;
    begin_ = mark();
    try {
      refresh();
    } catch (...) {
      roll_back();
      throw;
    }
    seen_version_ = version;
    known_ = true;
  }
  begin_ = mark();
}

void Writer::refresh() {
  heads_.clear();
  for (TransactionParticipant* const participant : participants_) participant->forget();
  kinds_.refresh(*connection_);
  Query last = connection_->query(sql::last_sequence);
  last.step();
  last_sequence_ = last.integer(0);
  required_.clear();
  Query participants = connection_->query(sql::participants);
  while (participants.step()) {
    required_.push_back({std::string{participants.text(0)}, std::string{participants.text(1)}});
  }
}

void Writer::commit() {
  {
    Query query = connection_->query(commit_sql);
    const int code = sqlite3_step(query.statement());
    if (code != SQLITE_DONE) {
      if (!leaves_commit_in_doubt(code)) fail(connection_->handle(), code, "the commit");
      failure_ = std::string{"an earlier commit is in doubt ("} +
                 sqlite3_errmsg(connection_->handle()) +
                 "); reopen the store and look whether it stands";
      throw CommitInDoubt{std::string{"the commit failed: "} +
                          sqlite3_errmsg(connection_->handle()) +
                          "; it may or may not stand after the store is reopened; append again "
                          "under the same append_id, or look"};
    }
  }
  heads_.commit();
  heads_.trim();
  kinds_.commit();
  seen_version_ = connection_->data_version();
  if (std::exchange(distrusted_, false)) known_ = false;
}

void Writer::roll_back() noexcept {
  if (connection_->in_transaction()) {
    sqlite3_exec(connection_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  go_back_to(begin_);
  heads_.trim();
  if (std::exchange(distrusted_, false)) known_ = false;
}

void Writer::go_back_to(const Mark& mark) noexcept {
  heads_.roll_back_to(mark.heads);
  kinds_.roll_back_to(mark.kinds);
  for (TransactionParticipant* const participant : participants_) participant->forget();
  last_sequence_ = mark.last_sequence;
}

void Writer::checkpoint_if_due() noexcept {
  if (wal_pages_ < checkpoint_at_) return;
  sqlite3* const database = connection_->handle();
  // FULL waits for readers of older snapshots; only for a moment, as we hold everybody up.
  sqlite3_busy_timeout(database, 20);
  int pages = 0;
  int moved = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(database, "main", SQLITE_CHECKPOINT_FULL, &pages, &moved);
  sqlite3_busy_timeout(database, static_cast<int>(settings_.busy_timeout.count()));
  if (code == SQLITE_OK && moved == pages) {
    checkpoint_at_ = settings_.checkpoint_pages;
    wal_pages_ = 0;
    return;
  }
  // Somebody reads an old snapshot, or the disk is full: try again after some more growth.
  checkpoint_at_ = wal_pages_ + std::max(settings_.checkpoint_pages / 4, 1);
  const std::array fields{LogEntry::Field{"wal_pages", std::to_string(wal_pages_)},
                          LogEntry::Field{"result", sqlite3_errstr(code)}};
  conventions().log->write({.level = LogLevel::warning,
                            .name = "checkpoint.incomplete",
                            .message = "the write-ahead log couldn't be moved into the database "
                                       "whole: a long reader, or no space",
                            .fields = fields});
}

void Writer::close() noexcept {
  try {
    // Leaves a database that is whole without its log, if nobody else is using it.
    if (!lock_->try_lock()) return;
    sqlite3_busy_timeout(connection_->handle(), 0);
    sqlite3_wal_checkpoint_v2(connection_->handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                              nullptr);
    lock_->unlock();
  } catch (const Error&) {
    // The log stays where it is; whoever opens the database next reads it.
  }
}

// --- appending

AppendResult Writer::append_now(const AppendRequest& request, WriteWork& work) {
  if (std::exchange(appending_, true)) {
    throw UsageError{"a transaction participant appended events; it may only write its own tables"};
  }
  struct Reset {
    bool& appending;
    ~Reset() { appending = false; }
  } const reset{appending_};

  check_participants();
  AppendResult result;
  if (!request.append_id.empty() && repeat(request, result)) return result;

  appended_.clear();
  work.correlation = request.context.correlation_id;
  const std::int64_t before = last_sequence_;
  for (const StreamAppend& append : request.streams) {
    append_stream(append, request, work);
    result.versions.emplace_back(heads_.find(append.stream.name())->second.version);
  }
  if (last_sequence_ > before) {
    result.first = GlobalSequence{before + 1};
    result.last = GlobalSequence{last_sequence_};
  }
  if (!appended_.empty()) {
    OpenTransaction transaction{*this, work};
    for (TransactionParticipant* const participant : participants_) {
      participant->on_append(transaction, appended_);
    }
    if (work.wants_events) keep_events(work);
  }
  if (!request.append_id.empty()) {
    connection_->query(sql::insert_append_id)
        .bind(1, request.append_id)
        .bind(2, result.first.value())
        .bind(3, result.last.value())
        .bind(4, checksum_of({result.first.value(), result.last.value()}, {request.append_id}))
        .run();
  }
  return result;
}

bool Writer::repeat(const AppendRequest& request, AppendResult& result) {
  Query found = connection_->query(sql::find_append_id);
  if (!found.bind(1, request.append_id).step()) return false;
  result.repeated = true;
  result.first = GlobalSequence{found.integer(0)};
  result.last = GlobalSequence{found.integer(1)};
  if (found.integer(2) != checksum_of({found.integer(0), found.integer(1)}, {request.append_id})) {
    throw CorruptEvent{"append id '" + std::string{request.append_id} +
                       "' doesn't match its checksum; restore it from a backup"};
  }
  for (const StreamAppend& append : request.streams) {
    Query version = connection_->query(sql::appended_version);
    version.bind(1, append.stream.name())
        .bind(2, result.first.value())
        .bind(3, result.last.value())
        .step();
    if (version.integer(0) != static_cast<std::int64_t>(append.events.size())) {
      throw UsageError{"append id '" + std::string{request.append_id} +
                       "' was used before, for an append that had not " +
                       std::to_string(append.events.size()) + " but " +
                       std::to_string(version.integer(0)) + " events for '" + append.stream.name() +
                       "'"};
    }
    result.versions.emplace_back(version.integer(1));
  }
  return true;
}

StreamHeads::Entry& Writer::head_of(const StreamId& stream) {
  if (StreamHeads::Entry* const known = heads_.find(stream.name())) return *known;
  StreamHead head;
  Query query = connection_->query(sql::stream_head);
  if (query.bind(1, stream.name()).step()) {
    head.stream = query.integer(0);
    if (!query.is_null(1)) {
      head.version = query.integer(1);
      const EventKind* const kind = kinds_.find_in_transaction(query.integer(2));
      if (kind == nullptr) {
        throw CorruptEvent{"the last event of '" + stream.name() + "' is of an unknown kind"};
      }
      head.published = kind->publishes ? head.version : query.integer(3);
    }
  }
  return heads_.add(stream.name(), head);
}

void Writer::append_stream(const StreamAppend& append, const AppendRequest& request,
                           WriteWork& work) {
  StreamHeads::Entry& head = head_of(append.stream);
  if (!append.expected.allows(StreamVersion{head.second.version})) {
    throw ConcurrencyConflict{append.stream.name(), append.expected.describe(),
                              StreamVersion{head.second.version}};
  }
  const auto count = static_cast<std::int64_t>(append.events.size());
  if (count == 0) return;
  const std::int64_t last_room = std::numeric_limits<std::int64_t>::max() - count;
  if (head.second.version > last_room || last_sequence_ > last_room) {
    throw CorruptEvent{(head.second.version > last_room
                            ? "the version of '" + append.stream.name() + '\''
                            : std::string{"the sequence"}) +
                       " can't grow any further: its last event is damaged"};
  }
  heads_.touch(head);
  if (head.second.stream == 0) {
    connection_->query(sql::insert_stream).bind(1, append.stream.name()).run();
    head.second.stream = sqlite3_last_insert_rowid(connection_->handle());
  }
  for (const NewEvent& event : append.events) {
    insert_event(append, event, head.second, request, work);
  }
}

void Writer::insert_event(const StreamAppend& append, const NewEvent& event, StreamHead& head,
                          const AppendRequest& request, WriteWork& work) {
  const EventKind& kind = kinds_.intern(
      {append.stream.category(), event.type, event.schema_version, event.publishes}, *connection_);
  const StoredEvent stored{.sequence = GlobalSequence{last_sequence_ + 1},
                           .stream = append.stream,
                           .version = StreamVersion{head.version + 1},
                           .kind = kind,
                           .id = ids_.next(now_),
                           .recorded_at = now_,
                           .correlation = work.correlation,
                           .causation_id = request.context.causation_id,
                           .metadata = work.metadata,
                           .published_before = StreamVersion{head.published},
                           .payload = event.payload};
  Query query = connection_->query(sql::insert_event);
  query.bind(1, stored.sequence.value())
      .bind(2, head.stream)
      .bind(3, stored.version.value())
      .bind(4, std::int64_t{kind.number})
      .bind(5, now_.time_since_epoch().count())
      .bind_blob(6, bytes_of(stored.id))
      .bind_optional(7, stored.correlation);
  if (stored.causation_id.is_nil()) {
    query.bind(8, nullptr);
  } else {
    query.bind_blob(8, bytes_of(stored.causation_id));
  }
  query.bind(9, head.published)
      .bind_optional(10, stored.metadata)
      .bind(11, event_checksum(stored))
      .bind_blob(12, stored.payload)
      .run();

  if (!participants_.empty() || work.wants_events) appended_.push_back(stored);
  // The first of several events that are appended together begins their correlation.
  if (work.correlation.empty()) work.correlation = stored.id.to_string();
  last_sequence_ = stored.sequence.value();
  head.version = stored.version.value();
  if (event.publishes) head.published = head.version;
}

void Writer::keep_events(WriteWork& work) {
  if (work.request != nullptr) {
    // They point into the request and its work, whose caller is waiting.
    for (const StoredEvent& event : appended_) work.events.push_back(event);
    return;
  }
  const StreamId* stream = nullptr;
  for (const StoredEvent& event : appended_) {
    if (stream == nullptr || *stream != event.stream) {
      stream = work.kept.streams.emplace_back(std::make_unique<StreamId>(event.stream)).get();
    }
    auto& pages = work.kept.pages;
    if (pages.empty()) pages.push_back(std::make_unique<EventPage>());
    if (!pages.back()->add(event)) {
      pages.push_back(std::make_unique<EventPage>());
      pages.back()->grow();
      pages.back()->add(event);
    }
    const StoredEvent& copy = pages.back()->events().back();
    work.events.push_back({copy.sequence, *stream, copy.version, copy.kind, copy.id,
                           copy.recorded_at, copy.correlation, copy.causation_id, copy.metadata,
                           copy.published_before, copy.payload});
  }
}

}  // namespace stela::sqlite
