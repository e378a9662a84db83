#include <stela/framework/aggregate_standing.hpp>
#include <stela/framework/error.hpp>

#include <string>
#include <string_view>

namespace stela::detail {

using State = TransactionOutcome::State;

namespace {

[[noreturn]] void refuse_using(const StreamId& stream, std::string_view problem) {
  throw UsageError{"'" + stream.name() + "' " + std::string{problem} + "; load it again"};
}

void check(Trouble trouble, const StreamId& stream) {
  switch (trouble) {
    case Trouble::none:
      return;
    case Trouble::commit_in_doubt:
      refuse_using(stream, "was saved by a commit that is in doubt");
    case Trouble::append_id_repeated:
      refuse_using(stream,
                   "was saved under an append id that had stored something else, and isn't what "
                   "is stored");
    case Trouble::not_noted:
      refuse_using(stream, "was saved, and what failed after that left it as it was before");
  }
}

}  // namespace

Saved AggregateStanding::saved(const StreamId& stream, StreamVersion before) const {
  check(trouble_, stream);
  Saved saved{.version = before};
  for (const Mark& mark : marks_) {
    const State state = mark.state();
    if (state == State::in_doubt) check(Trouble::commit_in_doubt, stream);
    // It takes those after it with it: they were inside the same transaction.
    if (state == State::rolled_back) {
      if (mark.saved.changes > 0) break;
      refuse_using(stream, "was loaded inside a transaction that was rolled back");
    }
    saved = mark.saved;
  }
  return saved;
}

Saved AggregateStanding::committed(StreamVersion before) const noexcept {
  Saved saved{.version = before};
  for (const Mark& mark : marks_) {
    if (mark.state() != State::committed) break;
    saved = mark.saved;
  }
  return saved;
}

void AggregateStanding::drop_ended(const Saved& committed) noexcept {
  std::size_t kept = 0;
  for (Mark& mark : marks_) {
    const State state = mark.state();
    if (state == State::rolled_back) break;
    if (state == State::committed && kept == 0) continue;
    mark.saved.changes -= committed.changes;
    if (&marks_[kept] != &mark) marks_[kept] = std::move(mark);
    ++kept;
  }
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(kept), marks_.end());
}

}  // namespace stela::detail
