// What an aggregate knows of the transactions that it was loaded and saved in.
#pragma once

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

/// How many of an aggregate's changes are saved, and the version that makes.
struct Saved {
  std::size_t changes = 0;
  StreamVersion version = {};
};

/// What has become of an aggregate's marks, all seen at one moment: transactions end meanwhile.
struct Settled {
  /// What can't be rolled back any more.
  Saved committed = {};
  /// Which marks are of transactions that haven't ended.
  std::size_t first_open = 0;
  std::size_t end_of_open = 0;
};

/// Why an aggregate may not be what is stored.
enum class Trouble : std::uint8_t {
  none,
  commit_in_doubt,
  append_id_repeated,
  /// Its events were appended, and what went wrong after that kept it from knowing; inside a
  /// transaction, whether they stand is that one's to say.
  not_noted,
  /// Its state threw while it applied an event: it may be half changed.
  half_applied,
};

/// Tells whether an aggregate is still the one that a save began with: its variable may have been
/// assigned to meanwhile. A copy has an identity of its own.
/// Threads: one at a time.
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

  /// The number to ask `is` with when the save has ended. A save inside of another shares it.
  std::uint64_t begin() noexcept {
    if (number_ == 0) number_ = draw();
    return number_;
  }
  bool is(std::uint64_t number) const noexcept { return number_ == number; }
  /// What was saved is noted, once.
  void end() noexcept { number_ = 0; }

 private:
  STELA_FRAMEWORK_EXPORT static std::uint64_t draw() noexcept;

  /// 0: no save has begun.
  std::uint64_t number_ = 0;
};

/// Marks of loads and saves in transactions that hadn't ended then, oldest first, each with the
/// outcome that it depends on; one for saves that follow each other with the same. Few aggregates
/// have any.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT AggregateStanding {
 public:
  /// True if it is what was last loaded and saved, whatever transactions do.
  bool is_settled() const noexcept { return marks_.empty() && trouble_ == Trouble::none; }
  /// True if nothing of it depends on a transaction that hasn't ended, except on that of `outcome`.
  bool depends_on_no_other(const TransactionOutcome* outcome) const noexcept;
  bool is_in_doubt() const noexcept { return trouble_ == Trouble::commit_in_doubt; }

  /// What is saved as things stand, given what was before all marks. UsageError if nobody knows, or
  /// if it was loaded in a transaction that was rolled back.
  Saved saved(const StreamId& stream, StreamVersion before) const;

  /// The same, to go on from. UsageError as `saved`.
  Settled settled(const StreamId& stream, StreamVersion before) const;
  /// Drops the marks of transactions that had ended; what was committed are no changes any more.
  void drop_ended(const Settled& settled) noexcept;

  void mark_loaded(std::shared_ptr<const TransactionOutcome> outcome, StreamVersion version) {
    marks_.push_back({std::move(outcome), {.version = version}});
  }
  /// `count` changes more than before are saved.
  void mark_saved(std::shared_ptr<const TransactionOutcome> outcome, std::size_t count,
                  StreamVersion version);
  /// What becomes of a save mends no state.
  void set_trouble(Trouble trouble) noexcept {
    if (trouble_ != Trouble::half_applied) trouble_ = trouble;
  }

 private:
  struct Mark {
    /// Null: committed.
    std::shared_ptr<const TransactionOutcome> outcome;
    /// Without changes it is a load.
    Saved saved;

    TransactionOutcome::State state() const noexcept {
      return outcome ? outcome->state() : TransactionOutcome::State::committed;
    }
    /// True if it was rolled back, and takes those after it with it: they were inside the same
    /// transaction. UsageError if nobody knows, or if it is a load.
    bool has_gone(TransactionOutcome::State state, const StreamId& stream) const;
  };

  /// Of many saves, each in a savepoint of its own that was released, one mark is left.
  void join_last() noexcept;

  std::vector<Mark> marks_;
  Trouble trouble_ = Trouble::none;
};

}  // namespace stela::detail
