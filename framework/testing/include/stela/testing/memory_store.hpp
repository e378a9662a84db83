// An event store in memory, for tests of a domain.
#pragma once

#include <stela/framework/event_store.hpp>
#include <stela/testing/export.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace stela::testing {

/// Behaves like every event store, and loses its events when it is destroyed. Passes the contract
/// suite. Threads: any number at once.
class STELA_TESTING_EXPORT MemoryStore final : public EventStore {
 public:
  struct Options {
    Codec codec = Codec::json;
    PublicationPolicy publishes = {};
    LogSink* log = &no_log();
    MetricSink* metrics = &no_metrics();
    const Clock* clock = &system_clock();
    Random* random = nullptr;
    /// Null: the store has keys of its own.
    Keyring* keys = nullptr;
    /// How long a write waits for the transaction of another thread before StoreBusy.
    std::chrono::milliseconds busy_timeout{5000};
  };

  MemoryStore();
  explicit MemoryStore(const Options& options);
  ~MemoryStore() override;

  const Conventions& conventions() const noexcept override;
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query = {}) override;
  EventRange read(const Query& query, const QueryRange& range = {}) override;
  Standpoint standpoint(std::span<const TagNeed> needs = {}) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
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

 private:
  class Core;
  class OpenTransaction;
  std::unique_ptr<Core> core_;
};

}  // namespace stela::testing
