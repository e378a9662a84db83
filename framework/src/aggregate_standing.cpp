#include <stela/framework/detail/aggregate_standing.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

namespace stela::detail {

namespace {

[[noreturn]] void refuse_using(const StreamId& stream, std::string_view problem) {
  throw UsageError{"'" + stream.name() + "' " + std::string{problem} + "; load it again"};
}

void check(Discrepancy trouble, const StreamId& stream) {
  switch (trouble) {
    case Discrepancy::none:
      return;
    case Discrepancy::commit_in_doubt:
      refuse_using(stream, "was saved by a commit that is in doubt");
    case Discrepancy::append_id_repeated:
      refuse_using(stream,
                   "was saved under an append id that had stored something else, and isn't what "
                   "is stored");
    case Discrepancy::not_noted:
      refuse_using(
          stream, "met an error after its events were appended, and can't tell whether they stand");
    case Discrepancy::half_applied:
      refuse_using(stream, "recorded an event that its state failed to apply");
  }
}

}  // namespace

std::uint64_t SaveIdentity::draw() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool AggregateStanding::Mark::has_gone(State state, const StreamId& stream) const {
  if (state == State::in_doubt) check(Discrepancy::commit_in_doubt, stream);
  if (state != State::rolled_back) return false;
  if (saved.changes > 0) return true;
  refuse_using(stream, "was loaded inside a transaction that was rolled back");
}

bool AggregateStanding::depends_on_no_other(const TransactionOutcome* outcome) const noexcept {
  return std::all_of(marks_.begin(), marks_.end(), [&](const Mark& mark) {
    // A mark that has ended since was open when the save began, and gave the save its version.
    return !mark.outcome || (outcome && mark.outcome->shares_transaction_with(*outcome));
  });
}

void AggregateStanding::refuse_store(const StoreIdentity& here, const StreamId& stream) const {
  throw UsageError{"'" + stream.name() + "' was loaded from or saved to " +
                   name_both(*store_, here, ", and can't be used with ") +
                   ": its version and state are of that store; load it from the one that saves it"};
}

Saved AggregateStanding::saved(const StreamId& stream, StreamVersion before) const {
  check(trouble_, stream);
  Saved saved{.version = before};
  for (const Mark& mark : marks_) {
    if (mark.has_gone(mark.state(), stream)) break;
    saved = mark.saved;
  }
  return saved;
}

Settled AggregateStanding::settled(const StreamId& stream, StreamVersion before) const {
  check(trouble_, stream);
  Settled settled{.committed = {.version = before}};
  for (const Mark& mark : marks_) {
    const State state = mark.state();
    if (mark.has_gone(state, stream)) break;
    if (state == State::committed && settled.first_open == settled.end_of_open) {
      settled.committed = mark.saved;
      ++settled.first_open;
    }
    ++settled.end_of_open;
  }
  return settled;
}

void AggregateStanding::join_last() noexcept {
  if (marks_.empty()) return;
  Mark& last = marks_.back();
  last.outcome = TransactionOutcome::decisive(std::move(last.outcome));
  if (marks_.size() < 2 || last.saved.changes == 0) return;
  Mark& before = marks_[marks_.size() - 2];
  if (before.saved.changes == 0 || before.outcome != last.outcome) return;
  before.saved = last.saved;
  marks_.pop_back();
}

void AggregateStanding::mark_saved(std::shared_ptr<const TransactionOutcome> outcome,
                                   std::size_t count, StreamVersion version) {
  join_last();
  const std::size_t before = marks_.empty() ? 0 : marks_.back().saved.changes;
  const Saved saved{before + count, version};
  if (before > 0 && marks_.back().outcome == outcome) {
    marks_.back().saved = saved;
  } else {
    marks_.push_back({std::move(outcome), saved});
  }
}

void AggregateStanding::drop_ended(const Settled& settled) noexcept {
  const auto at = [&](std::size_t index) {
    return marks_.begin() + static_cast<std::ptrdiff_t>(index);
  };
  marks_.erase(at(settled.end_of_open), marks_.end());
  marks_.erase(marks_.begin(), at(settled.first_open));
  for (Mark& mark : marks_) mark.saved.changes -= settled.committed.changes;
}

}  // namespace stela::detail
