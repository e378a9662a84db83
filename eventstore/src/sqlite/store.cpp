#include "forgotten_keys.hpp"
#include "ledger/cursor.hpp"
#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/pages.hpp"
#include "sqlite/transaction.hpp"
#include "sqlite_sql/snapshots.hpp"

#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>

#include <array>

namespace stela::sqlite {

std::string_view to_string(Durability durability) noexcept {
  return durability == Durability::full ? "full" : "relaxed";
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
