// Which store an aggregate belongs to, and how it depends on the transactions that it was loaded
// and saved in.
#pragma once

#include <stela/framework/detail/store_identity.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/transaction_outcome.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stela::detail {

/// How many of an aggregate's changes are saved, and the resulting version.
struct Saved {
  std::size_t changes = 0;
  StreamVersion version = {};
};

/// The state of an aggregate's marks at one moment. Transactions may end meanwhile.
struct Settled {
  /// Saved and committed: it can't be rolled back any more.
  Saved committed = {};
  /// The marks of open transactions: from `first_open` up to `end_of_open`.
  std::size_t first_open = 0;
  std::size_t end_of_open = 0;
};

/// The reasons why an aggregate may differ from the stored events.
enum class Discrepancy : std::uint8_t {
  none,
  commit_in_doubt,
  append_id_repeated,
  /// Its events were appended, but an error after that kept the aggregate from recording it. Inside
  /// a transaction, that transaction decides whether the events are stored.
  not_noted,
  /// Its state threw while it applied an event, and may be half changed.
  half_applied,
};

/// Tells whether an aggregate is still the one that a save began with. Its variable may have been
/// assigned to meanwhile. A copy has its own identity. Threads: one at a time.
class SaveIdentity {
 public:
  SaveIdentity() = default;
  SaveIdentity(const SaveIdentity&) noexcept {}
  SaveIdentity(SaveIdentity&& other) noexcept : number_{std::exchange(other.number_, 0)} {}
  SaveIdentity& operator=(const SaveIdentity& other) noexcept {
    if (this != &other) number_ = 0;
    return *this;
  }
  SaveIdentity& operator=(SaveIdentity&& other) noexcept {
    number_ = std::exchange(other.number_, 0);
    return *this;
  }
  ~SaveIdentity() = default;

  /// A number to pass to `is` when the save has ended. A save inside another one shares it.
  std::uint64_t begin() noexcept {
    if (number_ == 0) number_ = draw();
    return number_;
  }
  bool is(std::uint64_t number) const noexcept { return number_ == number; }
  /// A save was recorded; it counts only once.
  void end() noexcept { number_ = 0; }

 private:
  STELA_FRAMEWORK_EXPORT static std::uint64_t draw() noexcept;

  /// 0: no save has begun.
  std::uint64_t number_ = 0;
};

/// Marks of loads and saves in transactions that were open then, oldest first. Each mark has the
/// outcome that it depends on. Consecutive saves with the same outcome share a mark. Most
/// aggregates have none. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT AggregateStanding {
 public:
  /// True if its state doesn't depend on any transaction.
  bool is_settled() const noexcept { return marks_.empty() && trouble_ == Discrepancy::none; }
  /// True if it depends on no open transaction other than that of `outcome`.
  bool depends_on_no_other(const TransactionOutcome* outcome) const noexcept;
  /// UsageError if it was loaded from another store than `here`, or saved to another one.
  void check_is_of(const SharedIdentity& here, const StreamId& stream) const {
    if (are_different_stores(store_, here)) refuse_store(*here, stream);
  }
  void set_store(const SharedIdentity& store) noexcept {
    if (store_ != store) store_ = store;
  }
  bool is_in_doubt() const noexcept { return trouble_ == Discrepancy::commit_in_doubt; }

  /// The saved state now, given the state before all marks. UsageError if it is in doubt, or if the
  /// aggregate was loaded in a transaction that was rolled back.
  Saved saved(const StreamId& stream, StreamVersion before) const;

  /// As `saved`, with the data for the other functions. UsageError as `saved`.
  Settled settled(const StreamId& stream, StreamVersion before) const;
  /// Drops the marks of transactions that have ended. Committed changes no longer count as changes.
  void drop_ended(const Settled& settled) noexcept;

  void mark_loaded(std::shared_ptr<const TransactionOutcome> outcome, StreamVersion version) {
    marks_.push_back({std::move(outcome), {.version = version}});
  }
  /// `count` more changes are saved.
  void mark_saved(std::shared_ptr<const TransactionOutcome> outcome, std::size_t count,
                  StreamVersion version);
  /// The fate of a save doesn't repair a half-changed state.
  void set_trouble(Discrepancy trouble) noexcept {
    if (trouble_ != Discrepancy::half_applied) trouble_ = trouble;
  }

 private:
  using State = TransactionOutcome::State;

  struct Mark {
    /// Null: committed.
    std::shared_ptr<const TransactionOutcome> outcome;
    /// No changes: the mark is a load.
    Saved saved;

    State state() const noexcept { return outcome ? outcome->state() : State::committed; }
    /// True if it was rolled back. The marks after it are then rolled back as well, because they
    /// were inside the same transaction. UsageError if that is in doubt, or if the mark is a load.
    bool has_gone(State state, const StreamId& stream) const;
  };

  /// Joins the last two marks if they are saves that now depend on the same outcome. So many saves,
  /// each in a released savepoint of its own, need one mark.
  void join_last() noexcept;

  [[noreturn]] void refuse_store(const StoreIdentity& here, const StreamId& stream) const;

  /// Null if the aggregate is new.
  SharedIdentity store_;
  std::vector<Mark> marks_;
  Discrepancy trouble_ = Discrepancy::none;
};

}  // namespace stela::detail
