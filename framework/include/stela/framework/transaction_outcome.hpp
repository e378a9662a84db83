// The outcome of a transaction, for objects that may outlive it.
#pragma once

#include <stela/framework/export.hpp>
#include <stela/framework/numbers.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stela {

/// The outcome of a transaction, or of a savepoint inside one. The fate of a released savepoint
/// depends on the enclosing transaction. Objects that keep what was read or written in a
/// transaction ask for it later. Threads: any number at once.
class STELA_FRAMEWORK_EXPORT TransactionOutcome {
 public:
  enum class State : std::uint8_t { open, committed, rolled_back, in_doubt };

  /// For a savepoint inside the transaction of `enclosing`, if that is given.
  explicit TransactionOutcome(std::shared_ptr<const TransactionOutcome> enclosing = {}) noexcept
      : enclosing_{std::move(enclosing)} {}

  /// Once it isn't `open`, it never becomes `open` again.
  State state() const noexcept;

  /// The outcome that decides about everything that depends on `outcome`: for a released savepoint,
  /// that of the enclosing transaction.
  static std::shared_ptr<const TransactionOutcome> decisive(
      std::shared_ptr<const TransactionOutcome> outcome) noexcept;

  /// True if both belong to one transaction or to savepoints in it.
  bool shares_transaction_with(const TransactionOutcome& other) const noexcept {
    return &outermost() == &other.outermost();
  }

  /// Records the end. For a savepoint, `committed` means that it was released. Only the first call
  /// counts.
  void settle(State state) noexcept;

 private:
  const TransactionOutcome& outermost() const noexcept;

  std::atomic<State> own_{State::open};
  const std::shared_ptr<const TransactionOutcome> enclosing_;
};

/// The open transaction of an engine with its savepoints, and their outcomes. Threads: one at a
/// time.
class STELA_FRAMEWORK_EXPORT OpenOutcomes {
 public:
  using State = TransactionOutcome::State;

  /// Settled as rolled back, unless it was settled before.
  ~OpenOutcomes();

  /// Begins the transaction. `last` is the store's last sequence.
  void begin(GlobalSequence last) noexcept { transaction_.after = last; }
  /// Begins a savepoint inside the transaction.
  void open(GlobalSequence last) { savepoints_.push_back({.after = last}); }
  std::size_t depth() const noexcept { return savepoints_.size(); }
  /// Ends the savepoints beyond `depth`.
  void close(std::size_t depth, State state) noexcept;
  /// Ends the transaction. Only the first call counts.
  void settle(State state) noexcept;

  /// The outcome that the event with this sequence depends on. Null if it was committed before.
  std::shared_ptr<const TransactionOutcome> of(GlobalSequence sequence);
  /// Notes that tag facts were stored now; later reads rely on them.
  void note_tags() noexcept { innermost().has_noted_tags = true; }
  /// The outcome of a decision that reads now, with `head` as the last sequence. Null if everything
  /// up to there was committed before.
  std::shared_ptr<const TransactionOutcome> of_position(GlobalSequence head);
  /// True if this transaction sees what depends on `outcome`: it is committed, or a part of this
  /// transaction that wasn't rolled back. True for null.
  bool has(const TransactionOutcome* outcome) const noexcept;

 private:
  struct Frame {
    /// Events after this sequence were appended in it.
    GlobalSequence after = {};
    bool has_noted_tags = false;
    /// Created on demand.
    std::shared_ptr<TransactionOutcome> outcome = {};
  };

  Frame& innermost() noexcept { return savepoints_.empty() ? transaction_ : savepoints_.back(); }
  /// The outcome of the transaction and its first `savepoints` savepoints.
  std::shared_ptr<const TransactionOutcome> of_first(std::size_t savepoints);

  Frame transaction_;
  std::vector<Frame> savepoints_;
};

}  // namespace stela
