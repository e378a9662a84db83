// The event store: one handle, whichever engine keeps the events.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/uuid.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

namespace database {
class Database;
}

/// Gapless global sequence in commit order; appends of many threads share one commit (and one
/// fsync). A forked child is refused the store of its parent, whatever it asks of it: UsageError.
/// It may destroy its copy, and open the database only after that.
/// What is built on a store (Outbox, Projections, repositories, ranges, subscriptions) must end
/// before it is destroyed or assigned to, and doesn't notice when it is moved. A store that was
/// moved from may only be destroyed or assigned to.
/// Threads: any number at once; moving it is for one thread alone.
class STELA_EVENTSTORE_EXPORT Store final : public EventStore {
 public:
  /// What an engine makes a store of. Not for users.
  class Core;

  /// Use `open`, or that of an engine: `sqlite::open`.
  explicit Store(std::unique_ptr<Core> core) noexcept;
  ~Store() override;
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  const Conventions& conventions() const noexcept override;
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query = {}) override;
  EventRange read_all(const AllQuery& query = {}) override;
  EventRange read_at(std::span<const GlobalSequence> sequences) override;
  GlobalSequence last_sequence() override;
  std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                              GlobalSequence up_to) override;
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override;
  void drop_snapshot(const StreamId& stream) override;
  void transact(FunctionRef<void(Transaction&)> work) override;
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override;
  void attach(TransactionParticipant& participant) override;
  void detach(TransactionParticipant& participant) override;
  void forget_participant(std::string_view name) override;
  Subscription on_commit(std::function<void(const CommitNotice&)> listener) override;
  /// A handle to the same store that stays where it is, and ends with it. Don't move that one.
  Store& anchor() noexcept override;

  /// What this database is, for ever: part of what it publishes.
  const Uuid& id() const noexcept;

  /// For the modules of Stela.
  database::Database& database() const noexcept;

 private:
  struct Release {
    bool owns;
    void operator()(Core* core) const noexcept;
  };

  /// A handle that `core` itself has, and that doesn't own it.
  explicit Store(Core& core) noexcept;

  std::unique_ptr<Core, Release> core_;
};

/// Opens the store at `location`, and makes it if it is missing: the path of an SQLite database,
/// also as "sqlite:PATH". UsageError for a URL of an engine that this build doesn't have
/// ("postgresql://…"); otherwise as `sqlite::open`, which is also the way to set options.
STELA_EVENTSTORE_EXPORT Store open(const std::string& location);

}  // namespace stela
