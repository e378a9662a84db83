// How a transaction ended, for objects that may outlive it.
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

/// The outcome of a transaction, or of a savepoint inside one: what is released is decided by the
/// transaction around it. Whoever keeps what was read or written there looks at it later.
/// Threads: any number at once.
class STELA_FRAMEWORK_EXPORT TransactionOutcome {
 public:
  enum class State : std::uint8_t { open, committed, rolled_back, in_doubt };

  /// Of a savepoint inside the transaction of `enclosing`, if that is given.
  explicit TransactionOutcome(std::shared_ptr<const TransactionOutcome> enclosing = {}) noexcept
      : enclosing_{std::move(enclosing)} {}

  /// Never `open` again once it isn't.
  State state() const noexcept;

  /// What whoever depends on `outcome` depends on now: a savepoint that was released left that to
  /// what encloses it.
  static std::shared_ptr<const TransactionOutcome> decisive(
      std::shared_ptr<const TransactionOutcome> outcome) noexcept;

  /// True if both are of one transaction: it, or savepoints in it.
  bool shares_transaction_with(const TransactionOutcome& other) const noexcept {
    return &outermost() == &other.outermost();
  }

  /// How it ended; for a savepoint, `committed` means that it was released. Only the first counts.
  void settle(State state) noexcept;

 private:
  const TransactionOutcome& outermost() const noexcept;

  std::atomic<State> own_{State::open};
  const std::shared_ptr<const TransactionOutcome> enclosing_;
};

/// The open transaction of an engine with its savepoints, and their outcomes.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT OpenOutcomes {
 public:
  /// Settled as rolled back unless it was settled before.
  ~OpenOutcomes();

  /// The transaction begins where the store's last sequence is `last`.
  void begin(GlobalSequence last) noexcept { transaction_.after = last; }
  /// A savepoint begins inside of what is open.
  void open(GlobalSequence last) { savepoints_.push_back({last, nullptr}); }
  std::size_t depth() const noexcept { return savepoints_.size(); }
  /// The savepoints beyond `depth` end.
  void close(std::size_t depth, TransactionOutcome::State state) noexcept;
  /// The transaction ends. Only the first end counts.
  void settle(TransactionOutcome::State state) noexcept;

  /// What the event of that sequence depends on; null if it was committed before.
  std::shared_ptr<const TransactionOutcome> of(GlobalSequence sequence);

 private:
  struct Frame {
    /// Events after this one were appended in it.
    GlobalSequence after = {};
    /// Made when somebody asks for it.
    std::shared_ptr<TransactionOutcome> outcome = {};
  };

  Frame transaction_;
  std::vector<Frame> savepoints_;
};

}  // namespace stela
