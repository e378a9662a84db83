// The contents of a store in memory, and its open transaction.
#pragma once

#include "memory_rows.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/tag_facts.hpp>
#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>
#include <stela/testing/memory_keys.hpp>
#include <stela/testing/memory_store.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace stela::testing {
struct StreamHead {
  StreamVersion version;
  StreamVersion published;
};

struct AppendedBefore {
  AppendResult result;
  AppendedStreams streams;
};

/// The state that a transaction may change, except the events, which a rollback only cuts off.
struct MemoryState {
  std::map<StreamId, StreamHead> heads;
  std::map<std::string, AppendedBefore, std::less<>> append_ids;
  std::map<std::string, std::string, std::less<>> required;
  TagFacts tag_facts;
};

/// The turn to write: one transaction is open at a time. Threads: any number at once.
class Turn {
 public:
  explicit Turn(std::chrono::milliseconds patience) noexcept : patience_{patience} {}

  /// StoreBusy if another thread keeps it for longer than the patience.
  void lock() {
    std::unique_lock lock{mutex_};
    if (!ended_.wait_for(lock, patience_, [this] { return !is_taken(); })) {
      throw StoreBusy{"the transaction of another thread stayed open for " +
                      std::to_string(patience_.count()) +
                      " ms; don't wait in a transaction for a thread that writes"};
    }
    owner_ = std::this_thread::get_id();
  }
  /// As `lock`, without a limit.
  void lock_at_last() {
    std::unique_lock lock{mutex_};
    ended_.wait(lock, [this] { return !is_taken(); });
    owner_ = std::this_thread::get_id();
  }
  void unlock() noexcept {
    {
      const std::lock_guard lock{mutex_};
      owner_ = std::thread::id{};
    }
    ended_.notify_one();
  }
  bool is_own() const noexcept { return owner_ == std::this_thread::get_id(); }

 private:
  bool is_taken() const noexcept { return owner_ != std::thread::id{}; }

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable ended_;
  /// Set under mutex_.
  std::atomic<std::thread::id> owner_{};
};

class MemoryStore::Core {
 public:
  explicit Core(const Options& options)
      : clock{*options.clock},
        turn{options.busy_timeout},
        ids{options.random != nullptr ? UuidGenerator{*options.random} : UuidGenerator{}} {
    const Uuid id = make_uuid();
    conventions = {
        options.codec,
        options.publishes,
        options.log,
        options.metrics,
        std::make_shared<StoreIdentity>(StoreIdentity{id, "the store in memory " + id.to_string()}),
        &clock,
        options.keys != nullptr ? options.keys : &own_keys};
  }

  AppendResult append(const AppendRequest& request, OpenTransaction& transaction);
  /// Runs the work and commits it.
  void run(OpenTransaction& transaction, FunctionRef<void(Transaction&)> work);
  /// Searches the first `count` rows.
  std::vector<std::shared_ptr<const Row>> find(const StreamId& stream, const StreamQuery& query,
                                               std::size_t count);

  std::vector<std::shared_ptr<const Row>> find(const Query& query, const QueryRange& range,
                                               std::size_t count);
  std::optional<AppendResult> find_append(std::string_view append_id);
  /// TagsMissing if one of the first `count` rows lacks a needed tag. True if it noted the tags
  /// that types declare.
  bool check_needs(std::span<const TagNeed> needs, std::size_t count);
  /// Notes that the type declares these categories from now on. False if that was known.
  bool note_tags(std::string_view type, std::span<const TagDeclaration> declared);

  /// Counts all rows, also those of the open transaction.
  GlobalSequence last_sequence() const noexcept {
    return GlobalSequence{static_cast<std::int64_t>(rows.size())};
  }
  /// UsageError inside the transaction of this thread.
  void refuse_inside() const {
    if (!turn.is_own()) return;
    throw UsageError{
        "a store was written to from inside its own transaction; save and append through the "
        "Transaction that was handed in"};
  }
  /// Undoes what the open transaction did since there were `count` rows.
  void go_back_to(std::size_t count, MemoryState saved);
  void restore(MemoryState saved) {
    const std::lock_guard lock{mutex};
    state = std::move(saved);
  }

  const Clock& clock;
  MemoryKeys own_keys;
  Conventions conventions;
  CommitListeners listeners{conventions};
  /// Held by the writer while its transaction is open.
  Turn turn;

  /// Guards the members below against readers.
  std::mutex mutex;
  std::vector<std::shared_ptr<const Row>> rows;
  /// The number of committed rows. Readers see only these.
  std::size_t committed = 0;
  MemoryState state;
  std::map<StreamId, StoredSnapshot> snapshots;
  std::vector<TransactionParticipant*> participants;

 private:
  void check_participants() const;
  bool repeat(const AppendRequest& request, AppendResult& result) const;
  void check_condition(const AppendCondition& condition, const OpenTransaction& transaction) const;
  void check_versions(const AppendRequest& request);
  void append_event(const StreamAppend& append, const NewEvent& event, const AppendRequest& request,
                    const std::string& metadata, std::string& correlation);

  UuidGenerator ids;
  std::int32_t kinds_ = 0;
  std::map<std::tuple<std::string, int, bool>, EventKind> kinds_by_key_;
};

class MemoryStore::OpenTransaction final : public Transaction {
 public:
  explicit OpenTransaction(Core& core) noexcept : core_{core} {
    outcomes_.begin(core_.last_sequence());
  }

  const Conventions& conventions() const noexcept override { return core_.conventions; }
  AppendResult append(const AppendRequest& request) override {
    check_append(request, core_.conventions);
    AppendResult result;
    transact([&](Transaction&) { result = core_.append(request, *this); });
    return result;
  }
  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override {
    return range_of(core_.find(stream, query, core_.rows.size()), query.direction, query.limit);
  }
  EventRange read(const Query& query, const QueryRange& range) override {
    check_query(query);
    return range_of(core_.find(query, range, core_.rows.size()), range.direction, range.limit);
  }
  Standpoint standpoint(std::span<const TagNeed> needs) override {
    transact([&](Transaction&) {
      if (core_.check_needs(needs, core_.rows.size())) outcomes_.note_tags();
    });
    const GlobalSequence head = core_.last_sequence();
    return {.head = head, .outcome = outcomes_.of_position(head), .store = core_.conventions.store};
  }
  std::optional<AppendResult> find_append(std::string_view append_id) override {
    return core_.find_append(append_id);
  }
  std::optional<StoredSnapshot> find_snapshot(const StreamId&, StreamVersion,
                                              GlobalSequence) override {
    return std::nullopt;
  }
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override {
    snapshots_.emplace_back(stream, snapshot);
  }
  void drop_snapshot(const StreamId& stream) override {
    snapshots_.emplace_back(stream, std::nullopt);
  }
  void transact(FunctionRef<void(Transaction&)> work) override {
    const std::size_t before = core_.rows.size();
    const std::size_t snapshots = snapshots_.size();
    const std::size_t depth = outcomes_.depth();
    MemoryState saved = core_.state;
    outcomes_.open(core_.last_sequence());
    try {
      work(*this);
      outcomes_.close(depth, TransactionOutcome::State::committed);
    } catch (...) {
      outcomes_.close(depth, TransactionOutcome::State::rolled_back);
      while (snapshots_.size() > snapshots) snapshots_.pop_back();
      core_.go_back_to(before, std::move(saved));
      throw;
    }
  }
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override {
    return outcomes_.of(sequence);
  }

  bool has(const TransactionOutcome* outcome) const noexcept { return outcomes_.has(outcome); }
  void settle(TransactionOutcome::State state) noexcept { outcomes_.settle(state); }
  /// Snapshots to write after the commit; those without a value are dropped.
  const auto& snapshots() const noexcept { return snapshots_; }

 private:
  Core& core_;
  OpenOutcomes outcomes_;
  std::vector<std::pair<StreamId, std::optional<StoredSnapshot>>> snapshots_;
};

}  // namespace stela::testing
