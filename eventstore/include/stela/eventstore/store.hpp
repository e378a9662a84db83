// The event store: one handle for every engine.
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

/// Sequences have no gaps and follow commit order. Appends of several threads share one commit (and
/// one fsync). In a forked child every call on its parent's store is a UsageError. The child may
/// destroy its copy, and only then open the database. Objects that use a store (Outbox,
/// Projections, repositories, ranges, subscriptions) must end before it is destroyed or assigned
/// to. Moving the store doesn't affect them. A moved-from store may only be destroyed or assigned
/// to. Threads: any number at once; only one thread may move it.
class STELA_EVENTSTORE_EXPORT Store final : public EventStore {
 public:
  /// The engine's part of a store. Not for users.
  class Core;

  /// Call `open` instead, or the function of an engine: `sqlite::open`.
  explicit Store(std::unique_ptr<Core> core) noexcept;
  ~Store() override;
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  const Conventions& conventions() const noexcept override;
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query = {}) override;
  EventRange read(const Query& query, const QueryRange& range = {}) override;
  Standpoint standpoint(std::span<const TagNeed> needs = {}) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  DecisionAnswer answer(const DecisionQuestion& question) override;
  EventRange read_all(const AllQuery& query = {}) override;
  EventRange read_at(std::span<const GlobalSequence> sequences) override;
  GlobalSequence last_sequence() override;
  TagCatalogue tag_catalogue() override;
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
  /// A handle to the same store that doesn't move and ends with it. Don't move the anchor itself.
  Store& anchor() noexcept override;

  /// The permanent identity of this database. Published messages carry it.
  const Uuid& id() const noexcept;

  /// For the modules of Stela.
  database::Database& database() const noexcept;

 private:
  struct Release {
    bool owns;
    void operator()(Core* core) const noexcept;
  };

  /// A handle that `core` keeps. It doesn't own `core`.
  explicit Store(Core& core) noexcept;

  std::unique_ptr<Core, Release> core_;
};

/// Options of `open` that every engine has.
struct OpenOptions {
  /// The keys of personal fields. They must outlive the store. Null: those fields stay sealed, and
  /// none is written.
  Keyring* keys = nullptr;
};

/// Opens the store at `location`, and creates it if it is missing. `location` is the path of an
/// SQLite database, also as "sqlite:PATH", or the URL of a PostgreSQL database ("postgresql://…");
/// `postgres::open` also takes keywords and values ("host=… dbname=…"). UsageError for a URL of an
/// engine that this build doesn't have. Other errors as for `sqlite::open` and `postgres::open`,
/// which also take options.
STELA_EVENTSTORE_EXPORT Store open(const std::string& location, const OpenOptions& options = {});

/// Whether a location is the URL of a database on a server rather than the path of a file.
/// UsageError if it is neither: a URL of another engine, or PostgreSQL keywords and values. The
/// error repeats nothing that may be a password.
STELA_EVENTSTORE_EXPORT bool is_on_server(const std::string& location);

}  // namespace stela
