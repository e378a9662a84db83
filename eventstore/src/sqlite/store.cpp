#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite_sql/snapshots.hpp"

#include <stela/eventstore/checkpoint.hpp>
#include <stela/framework/append_check.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/metadata.hpp>
#include <stela/framework/repository.hpp>

#include <array>

namespace stela::sqlite {

std::string_view to_string(Durability durability) noexcept {
  return durability == Durability::full ? "full" : "relaxed";
}

Store::Store(std::unique_ptr<Core> core) : core_{std::move(core)} {}
Store::~Store() = default;

const Conventions& Store::conventions() const noexcept {
  return core_->conventions();
}
database::Database& Store::database() noexcept {
  return *core_;
}
const Uuid& Store::id() const noexcept {
  return core_->facts().store_id;
}
Durability Store::durability() const noexcept {
  return core_->facts().durability;
}
const std::string& Store::path() const noexcept {
  return core_->path();
}

AppendResult Store::append(const AppendRequest& request) {
  check_append(request);
  WriteWork work;
  work.request = &request;
  work.metadata = metadata::encode(request.context);
  work.wants_events = has_commit_listeners();
  work.exclusive = core_->writer().has_user_code();
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) work.bytes += event.payload.size();
  }
  core_->writer().run(work);
  if (!work.events.empty()) notify_commit({work.events});
  return std::move(work.result);
}

void Store::transact(FunctionRef<void(Transaction&)> user) {
  WriteWork work;
  work.user = &user;
  work.exclusive = true;
  work.wants_events = has_commit_listeners();
  core_->writer().run(work);
  if (!work.events.empty()) notify_commit({work.events});
  for (const auto& [stream, snapshot] : work.snapshots) {
    try {
      if (snapshot) {
        save_snapshot(stream, *snapshot);
      } else {
        drop_snapshot(stream);
      }
    } catch (const std::exception& e) {
      detail::log_snapshot_failure(conventions(), stream, e.what());
    }
  }
}

std::shared_ptr<const TransactionOutcome> Store::outcome_of(GlobalSequence sequence) {
  // A store in memory has one connection: a read beside the open transaction sees what it wrote.
  return core_->writer().outcome_of(sequence);
}

EventRange Store::read_stream(const StreamId& stream, const StreamQuery& query) {
  return EventRange{sqlite::read_stream(core_->reading(), core_->kinds(), stream, query)};
}

EventRange Store::read_all(const AllQuery& query) {
  return EventRange{sqlite::read_all(core_->reading(), core_->kinds(), query)};
}

EventRange Store::read_at(std::span<const GlobalSequence> sequences) {
  return EventRange{sqlite::read_at(core_->reading(), core_->kinds(), sequences)};
}

GlobalSequence Store::last_sequence() {
  GlobalSequence last;
  core_->reading().read(
      [&](Connection& connection) { last = GlobalSequence{sqlite::last_sequence(connection)}; });
  return last;
}

std::optional<StoredSnapshot> Store::find_snapshot(const StreamId& stream, StreamVersion to,
                                                   GlobalSequence up_to) {
  std::optional<StoredSnapshot> snapshot;
  core_->reading().read([&](Connection& connection) {
    snapshot = sqlite::find_snapshot(connection, conventions(), stream, to, up_to);
  });
  return snapshot;
}

void Store::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  core_->writer().run_statements(
      [&](Connection& connection) {
        sqlite::save_snapshot(connection, stream, snapshot, core_->now());
      },
      Sync::none);
}

void Store::drop_snapshot(const StreamId& stream) {
  core_->writer().run_statements(
      [&](Connection& connection) { connection.run(sql::drop_snapshot{.name = stream.name()}); },
      Sync::none);
}

void Store::attach(TransactionParticipant& participant) {
  core_->writer().attach(participant);
}
void Store::detach(TransactionParticipant& participant) {
  core_->writer().detach(participant);
}
void Store::forget_participant(std::string_view name) {
  core_->writer().forget_participant(name);
}

CheckpointResult checkpoint(Store& store) {
  return core_of(store).writer().checkpoint();
}

Store open(const std::string& path, const Options& options) {
  check_path(path, options);
  return Store{std::make_unique<Store::Core>(path, options)};
}

Store open_in_memory(const Options& options) {
  return Store{std::make_unique<Store::Core>(std::string{}, options)};
}

}  // namespace stela::sqlite
