#include "ledger/cursor.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace stela::ledger {
namespace {

constexpr std::int64_t first_page_rows = 128;
/// The most sequences that one read scans, unless a page fills up before.
constexpr std::int64_t most_looked = 65'536;

/// The common part of all cursors. A page may be read again, so `State`, the cursor's position,
/// advances only after a page that can't be lost.
template <class State>
class Cursor : public EventCursor {
 public:
  explicit Cursor(std::unique_ptr<Pages> pages) noexcept : pages_{std::move(pages)} {}

  std::span<const StoredEvent> next_page() final {
    page_.clear();
    pages_->trim();
    if (++number_ > 1 || pages_->is_far()) page_.grow();
    page_.reserve(static_cast<std::size_t>(rows_wanted()));
    while (!state_.done && page_.empty()) {
      State next = state_;
      pages_->read([&](Connection& connection) {
        page_.clear();
        next = state_;
        const std::int64_t bound = fill(connection, next);
        return page_.empty() ? bound : std::max(bound, newest());
      });
      state_ = std::move(next);
    }
    return page_.events();
  }

 protected:
  /// Adds events to the page, and advances `state` past the scanned part. Returns the highest
  /// sequence, beyond the page's, that the cursor now relies on; or 0.
  virtual std::int64_t fill(Connection& connection, State& state) = 0;

  std::int64_t rows_wanted(std::int64_t limit = no_limit) const noexcept {
    return std::min(limit, number_ <= 1 ? first_page_rows : pages_->rows_of_page());
  }
  std::int64_t rows_read() const noexcept {
    return static_cast<std::int64_t>(page_.events().size());
  }

  const std::unique_ptr<Pages> pages_;
  EventPage page_;
  State state_;

 private:
  std::int64_t newest() const noexcept {
    const auto events = page_.events();
    return std::max(events.front().sequence, events.back().sequence).value();
  }

  int number_ = 0;
};

struct StreamState {
  StreamQuery query = {};
  Succession succession = {.of = Succession::Of::versions};
  bool done = false;
};

class StreamCursor final : public Cursor<StreamState> {
 public:
  StreamCursor(std::unique_ptr<Pages> pages, const StreamId& stream, const StreamQuery& query)
      : Cursor{std::move(pages)}, stream_{stream} {
    state_.query = query;
    state_.query.from = std::max(query.from, StreamVersion{1});
    state_.done = state_.query.from > query.to || query.limit <= 0;
    if (is_forward()) {
      state_.succession.next = state_.query.from.value();
    } else {
      state_.succession.step = -1;
    }
  }

 private:
  bool is_forward() const noexcept { return state_.query.direction == Direction::forward; }

  std::int64_t fill(Connection& connection, StreamState& state) override {
    StreamQuery& query = state.query;
    Succession& succession = state.succession;
    bool has_ended =
        pages_->add_stream(connection, stream_, query, rows_wanted(query.limit), succession, page_);
    // Forward, the stream's end is unknown; backward, it ends at its first version.
    if (has_ended && !is_forward() && succession.next >= query.from.value()) {
      if (page_.empty()) succession.fail_at_end(&stream_);
      has_ended = false;
    }
    query.limit -= rows_read();
    state.done = has_ended || query.limit <= 0 || page_.empty() || succession.next == 0;
    if (!page_.empty()) (is_forward() ? query.from : query.to) = StreamVersion{succession.next};
    state.done = state.done || query.from > query.to;
    return 0;
  }

  const StreamId stream_;
};

/// The remaining sequences, and the remaining number of events.
struct LeftState {
  Range left = {};
  std::int64_t limit = no_limit;
  bool is_bounded = false;
  bool done = false;
  /// The range being read, for a read that selects ranges.
  std::optional<Range> range = {};

  /// Reads nothing after the `last` event, so that later pages see the same events. Returns the new
  /// end.
  std::int64_t bound(std::int64_t last) noexcept {
    left.end = std::min(left.end, last);
    done = left.begin > left.end;
    is_bounded = true;
    return std::max<std::int64_t>(left.end, 0);
  }
  /// All sequences up to this one were scanned.
  void pass(std::int64_t sequence, bool is_forward) noexcept {
    // No sequence follows the largest number.
    done = limit <= 0 || sequence == (is_forward ? left.end : left.begin);
    if (!done) (is_forward ? left.begin : left.end) = sequence + (is_forward ? 1 : -1);
  }
};

class AllCursor final : public Cursor<LeftState> {
 public:
  AllCursor(std::unique_ptr<Pages> pages, const AllQuery& query)
      : Cursor{std::move(pages)},
        query_{query},
        is_forward_{query.direction == Direction::forward},
        is_filtered_{!query.streams.empty() || !query.categories.empty() ||
                     !query.event_types.empty() || query.since || query.until} {
    state_.left = {std::max<std::int64_t>(query.from.value(), 1), query.to.value()};
    state_.limit = query.limit;
    state_.done = state_.left.begin > state_.left.end || query.limit <= 0;
  }

 private:
  std::int64_t fill(Connection& connection, LeftState& state) override {
    const std::int64_t taken =
        state.is_bounded ? 0 : state.bound(pages_->last_sequence(connection));
    // Reads several short ranges, together at most as long as one statement's range may be.
    std::int64_t looked = 0;
    while (!state.done && looked < most_looked && rows_read() < rows_wanted()) {
      if (!state.range) state.range = next_range(connection, state);
      if (!state.range) {
        state.done = true;
        break;
      }
      looked += state.range->end - state.range->begin + 1;
      if (!read_range(connection, state)) break;
    }
    return taken;
  }

  std::int64_t wanted_of(const LeftState& state) const noexcept {
    return std::min(state.limit, rows_wanted() - rows_read());
  }

  std::optional<Range> next_range(Connection& connection, const LeftState& state) {
    const Range& left = state.left;
    if (is_filtered_) return pages_->next_range(connection, query_, left);
    // Sequences have no gaps, so this many fill the page, whatever plan a server chooses.
    const std::int64_t most = wanted_of(state) - 1;
    if (!pages_->is_far() || left.end - left.begin <= most) return left;
    return is_forward_ ? Range{left.begin, left.begin + most} : Range{left.end - most, left.end};
  }

  /// False if the page ended before the range did.
  bool read_range(Connection& connection, LeftState& state) {
    Range& range = *state.range;
    const std::int64_t before = rows_read();
    const bool is_complete =
        is_filtered_ ? pages_->add_filtered(connection, query_, range, wanted_of(state), page_)
                     : add_all(connection, range, wanted_of(state));
    const std::int64_t read = rows_read() - before;
    state.limit -= read;
    // The page was full before this range began.
    if (!is_complete && read == 0) return false;
    const std::int64_t reached = !is_complete  ? page_.events().back().sequence.value()
                                 : is_forward_ ? range.end
                                               : range.begin;
    state.pass(reached, is_forward_);
    (is_forward_ ? range.begin : range.end) = reached + (is_forward_ ? 1 : -1);
    if (range.begin > range.end) state.range.reset();
    return is_complete;
  }

  bool add_all(Connection& connection, const Range& range, std::int64_t wanted) {
    Succession succession{.of = Succession::Of::sequences,
                          .next = is_forward_ ? range.begin : range.end,
                          .step = is_forward_ ? 1 : -1};
    const bool is_complete =
        pages_->add_range(connection, query_, range, wanted, succession, page_);
    if (!is_complete || succession.next == 0 ||
        (is_forward_ ? succession.next > range.end : succession.next < range.begin)) {
      return is_complete;
    }
    // The next page begins with the missing event, and reports it.
    if (page_.empty()) succession.fail_at_end(nullptr);
    return false;
  }

  const AllQuery query_;
  const bool is_forward_;
  const bool is_filtered_;
};

class QueryCursor final : public Cursor<LeftState> {
 public:
  QueryCursor(std::unique_ptr<Pages> pages, const Query& query, const QueryRange& range)
      : Cursor{std::move(pages)}, query_{query}, direction_{range.direction} {
    const std::int64_t after = std::max<std::int64_t>(range.after.value(), 0);
    state_.limit = range.limit;
    // No sequence follows the largest one.
    state_.done = after >= range.up_to.value() || range.limit <= 0;
    if (!state_.done) state_.left = {after + 1, range.up_to.value()};
  }

 private:
  std::int64_t fill(Connection& connection, LeftState& state) override {
    const std::int64_t taken =
        state.is_bounded ? 0 : state.bound(pages_->last_sequence(connection));
    if (state.done) return taken;
    const std::int64_t reached = pages_->add_matching(connection, query_, direction_, state.left,
                                                      rows_wanted(state.limit), page_);
    state.limit -= rows_read();
    state.pass(reached, direction_ == Direction::forward);
    return taken;
  }

  const Query query_;
  const Direction direction_;
};

struct AtState {
  std::size_t next = 0;
  bool done = false;
};

class AtCursor final : public Cursor<AtState> {
 public:
  AtCursor(std::unique_ptr<Pages> pages, std::span<const GlobalSequence> sequences)
      : Cursor{std::move(pages)} {
    for (const GlobalSequence sequence : sequences) sequences_.push_back(sequence.value());
    std::sort(sequences_.begin(), sequences_.end());
    sequences_.erase(std::unique(sequences_.begin(), sequences_.end()), sequences_.end());
    state_.done = sequences_.empty();
  }

 private:
  std::int64_t fill(Connection& connection, AtState& state) override {
    state.next += pages_->add_at(connection, std::span{sequences_}.subspan(state.next), page_);
    state.done = state.next == sequences_.size();
    return 0;
  }

  std::vector<std::int64_t> sequences_;
};

}  // namespace

EventRange read_stream(std::unique_ptr<Pages> pages, const StreamId& stream,
                       const StreamQuery& query) {
  return EventRange{std::make_unique<StreamCursor>(std::move(pages), stream, query)};
}

EventRange read_all(std::unique_ptr<Pages> pages, const AllQuery& query) {
  return EventRange{std::make_unique<AllCursor>(std::move(pages), query)};
}

EventRange read_query(std::unique_ptr<Pages> pages, const Query& query, const QueryRange& range) {
  return EventRange{std::make_unique<QueryCursor>(std::move(pages), query, range)};
}

EventRange read_at(std::unique_ptr<Pages> pages, std::span<const GlobalSequence> sequences) {
  return EventRange{std::make_unique<AtCursor>(std::move(pages), sequences)};
}

}  // namespace stela::ledger
