#include <stela/framework/transaction_outcome.hpp>

namespace stela {

using State = TransactionOutcome::State;

TransactionOutcome::State TransactionOutcome::state() const noexcept {
  const State own = own_.load(std::memory_order_acquire);
  if (own == State::rolled_back || own == State::in_doubt || !enclosing_) return own;
  return enclosing_->state();
}

const TransactionOutcome& TransactionOutcome::outermost() const noexcept {
  const TransactionOutcome* outcome = this;
  while (outcome->enclosing_) outcome = outcome->enclosing_.get();
  return *outcome;
}

std::shared_ptr<const TransactionOutcome> TransactionOutcome::decisive(
    std::shared_ptr<const TransactionOutcome> outcome) noexcept {
  while (outcome && outcome->enclosing_ &&
         outcome->own_.load(std::memory_order_acquire) == State::committed) {
    outcome = outcome->enclosing_;
  }
  return outcome;
}

void TransactionOutcome::settle(State state) noexcept {
  State open = State::open;
  own_.compare_exchange_strong(open, state, std::memory_order_acq_rel);
}

OpenOutcomes::~OpenOutcomes() {
  settle(State::rolled_back);
}

void OpenOutcomes::close(std::size_t depth, State state) noexcept {
  while (savepoints_.size() > depth) {
    if (savepoints_.back().outcome) savepoints_.back().outcome->settle(state);
    savepoints_.pop_back();
  }
}

void OpenOutcomes::settle(State state) noexcept {
  close(0, state);
  if (transaction_.outcome) transaction_.outcome->settle(state);
}

std::shared_ptr<const TransactionOutcome> OpenOutcomes::of(GlobalSequence sequence) {
  if (sequence <= transaction_.after) return nullptr;
  const auto make = [](Frame& frame, const std::shared_ptr<const TransactionOutcome>& enclosing) {
    if (!frame.outcome) frame.outcome = std::make_shared<TransactionOutcome>(enclosing);
    return frame.outcome;
  };
  std::shared_ptr<const TransactionOutcome> outcome = make(transaction_, nullptr);
  for (Frame& savepoint : savepoints_) {
    if (sequence <= savepoint.after) break;
    outcome = make(savepoint, outcome);
  }
  return outcome;
}

}  // namespace stela
