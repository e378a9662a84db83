#include "forgotten_keys.hpp"
#include "ledger/cursor.hpp"
#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/pages.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite_sql/snapshots.hpp"

#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/repository.hpp>

#include <array>

namespace stela::sqlite {

std::string_view to_string(Durability durability) noexcept {
  return durability == Durability::full ? "full" : "relaxed";
}

void Core::fill(WriteWork& work, const AppendRequest& request) const {
  check_append(request, conventions_);
  work.request = &request;
  work.metadata = metadata::encode(request.context);
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) work.bytes += event.payload.size();
  }
}

void Core::notify(const WriteWork& work) noexcept {
  if (!work.events.empty()) listeners_.notify({work.events});
}

AppendResult Core::append(const AppendRequest& request) {
  WriteWork work;
  fill(work, request);
  work.wants_events = !listeners_.is_empty();
  work.exclusive = writer_->has_user_code();
  writer_->run(work);
  notify(work);
  return std::move(work.result);
}

std::unique_ptr<DeferredAppend> Core::defer(const AppendRequest& request, AppendClient& client) {
  auto append = std::make_unique<DeferredWrites::Append>(client);
  fill(*append, request);
  return append;
}

void Core::carry_out(DeferredAppends& appends) noexcept {
  DeferredWrites batch{appends, {writer_->has_user_code(), !listeners_.is_empty()}};
  writer_->run(batch);
  for (DeferredWrites::Append* const append : batch.taken()) {
    if (!append->error && !append->in_context([&] { notify(*append); })) notify(*append);
    append->client.complete(std::move(append->error), std::move(append->result));
  }
}

void Core::transact(FunctionRef<void(Transaction&)> user) {
  WriteWork work;
  work.user = &user;
  work.exclusive = true;
  work.wants_events = !listeners_.is_empty();
  writer_->run(work);
  notify(work);
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

std::shared_ptr<const TransactionOutcome> Core::outcome_of(GlobalSequence sequence) {
  // A store in memory has one connection: a read during the open transaction sees its writes.
  return writer_->outcome_of(sequence);
}

EventRange Core::read_stream(const StreamId& stream, const StreamQuery& query) {
  return ledger::read_stream(make_pages(reading(), kinds_), stream, query);
}

EventRange Core::read_all(const AllQuery& query) {
  return ledger::read_all(make_pages(reading(), kinds_), query);
}

EventRange Core::read_at(std::span<const GlobalSequence> sequences) {
  return ledger::read_at(make_pages(reading(), kinds_), sequences);
}

GlobalSequence Core::last_sequence() {
  GlobalSequence last;
  reading().read(
      [&](Connection& connection) { last = GlobalSequence{sqlite::last_sequence(connection)}; });
  return last;
}

std::optional<StoredSnapshot> Core::find_snapshot(const StreamId& stream, StreamVersion to,
                                                  GlobalSequence up_to) {
  std::optional<StoredSnapshot> snapshot;
  reading().read([&](Connection& connection) {
    snapshot = sqlite::find_snapshot(connection, conventions(), stream, to, up_to);
  });
  return snapshot;
}

void Core::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  writer_->run_statements(
      [&](Connection& connection) { sqlite::save_snapshot(connection, stream, snapshot, now()); },
      Sync::none);
}

void Core::drop_snapshot(const StreamId& stream) {
  writer_->run_statements(
      [&](Connection& connection) { connection.run(sql::drop_snapshot{.name = stream.name()}); },
      Sync::none);
}

const std::string& path(const Store& store) {
  return core_of(store).path();
}

Durability durability(const Store& store) {
  return core_of(store).facts().durability;
}

CheckpointResult checkpoint(Store& store) {
  return core_of(store).writer().checkpoint();
}

Store open(const std::string& path, const Options& options) {
  check_path(path, options);
  Store store{std::make_unique<Core>(path, options)};
  settle_keys(store, options.read_only);
  return store;
}

Store open_in_memory(const Options& options) {
  return Store{std::make_unique<Core>(std::string{}, options)};
}

}  // namespace stela::sqlite
