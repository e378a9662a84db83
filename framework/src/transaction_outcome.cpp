#include <stela/framework/transaction_outcome.hpp>

namespace stela {

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
    const bool keeps_tags = savepoints_.back().has_noted_tags && state == State::committed;
    savepoints_.pop_back();
    if (keeps_tags) note_tags();
  }
}

void OpenOutcomes::settle(State state) noexcept {
  close(0, state);
  if (transaction_.outcome) transaction_.outcome->settle(state);
}

std::shared_ptr<const TransactionOutcome> OpenOutcomes::of_first(std::size_t savepoints) {
  const auto make = [](Frame& frame, const std::shared_ptr<const TransactionOutcome>& enclosing) {
    if (!frame.outcome) frame.outcome = std::make_shared<TransactionOutcome>(enclosing);
    return frame.outcome;
  };
  std::shared_ptr<const TransactionOutcome> outcome = make(transaction_, nullptr);
  for (std::size_t i = 0; i < savepoints; ++i) outcome = make(savepoints_[i], outcome);
  return outcome;
}

std::shared_ptr<const TransactionOutcome> OpenOutcomes::of(GlobalSequence sequence) {
  if (sequence <= transaction_.after) return nullptr;
  std::size_t depth = 0;
  while (depth < savepoints_.size() && sequence > savepoints_[depth].after) ++depth;
  return of_first(depth);
}

std::shared_ptr<const TransactionOutcome> OpenOutcomes::of_position(GlobalSequence head) {
  for (std::size_t depth = savepoints_.size(); depth > 0; --depth) {
    const Frame& savepoint = savepoints_[depth - 1];
    if (head > savepoint.after || savepoint.has_noted_tags) return of_first(depth);
  }
  return head > transaction_.after || transaction_.has_noted_tags ? of_first(0) : nullptr;
}

bool OpenOutcomes::has(const TransactionOutcome* outcome) const noexcept {
  if (outcome == nullptr) return true;
  const State state = outcome->state();
  if (state != State::open) return state == State::committed;
  return transaction_.outcome && outcome->shares_transaction_with(*transaction_.outcome);
}

}  // namespace stela
