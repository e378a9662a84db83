#include "tables/message_list.hpp"

#include "database/database.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"
#include "tables/locator.hpp"

#include <stela/framework/not_found.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

namespace stela::outbox {

using database::Connection;

namespace {

constexpr std::int64_t page_rows = 256;
/// So many sequences one statement looks at for events that are published.
constexpr std::int64_t window = 4096;
/// So many rows may be looked at for each message that is found, besides those that the query says.
constexpr std::int64_t looked_for_each = 20;
/// What became of an event takes some statements: as many rows could be looked at.
constexpr std::int64_t cost_of_event = 10;

/// Of sequences; both ends belong to it.
struct Range {
  std::int64_t low;
  std::int64_t high;

  bool is_empty() const noexcept { return low > high; }
  /// Leaves what comes after `sequence`.
  void pass(std::int64_t sequence, bool is_backward) noexcept {
    (is_backward ? high : low) = sequence + (is_backward ? -1 : 1);
  }
};

Range range_of(const MessageQuery& query) {
  Range range{query.from.value(), query.to.value()};
  if (query.direction == Direction::forward) {
    range.low = std::max(range.low, query.after.value() + 1);
  } else if (query.after.value() > 0) {
    range.high = std::min(range.high, query.after.value() - 1);
  }
  return range;
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// What is chosen, apart from where it is.
class Choice {
 public:
  explicit Choice(const MessageQuery& query) : query_{query}, error_{in_lower_case(query.error)} {}

  /// Whatever is read is chosen, as far as its state is.
  bool is_of_all() const noexcept {
    return query_.type.empty() && error_.empty() && !query_.since && !query_.until;
  }
  bool has_state(MessageState state) const noexcept {
    if (query_.state) return state == *query_.state;
    return state != MessageState::published && state != MessageState::discarded;
  }
  /// As far as the message is known without its event.
  bool takes(const OutboxMessage& message) const {
    return has_state(message.state) &&
           (!query_.partition || message.partition == *query_.partition) &&
           (error_.empty() || in_lower_case(message.last_error).find(error_) != std::string::npos);
  }
  bool takes_event_of(const OutboxMessage& message) const noexcept {
    return (query_.type.empty() || message.type == query_.type) &&
           (!query_.since || message.recorded_at >= *query_.since) &&
           (!query_.until || message.recorded_at <= *query_.until);
  }

 private:
  const MessageQuery& query_;
  const std::string error_;
};

/// Messages of one table and partition, in order, a page at a time.
class Source {
 public:
  using Fetch =
      std::function<void(const Range& range, std::int64_t most, std::vector<OutboxMessage>& into)>;
  Source(Fetch fetch, Range left) : fetch_{std::move(fetch)}, left_{left} {}

  /// The next one; null at the end.
  OutboxMessage* head(std::int64_t most, bool is_backward) {
    if (at_ == rows_.size() && !left_.is_empty()) fill(most, is_backward);
    return at_ < rows_.size() ? &rows_[at_] : nullptr;
  }
  OutboxMessage take() { return std::move(rows_[at_++]); }

 private:
  void fill(std::int64_t most, bool is_backward) {
    rows_.clear();
    at_ = 0;
    fetch_(left_, most, rows_);
    if (static_cast<std::int64_t>(rows_.size()) < most) {
      left_ = {1, 0};
    } else {
      left_.pass(rows_.back().sequence.value(), is_backward);
    }
  }

  Fetch fetch_;
  Range left_;
  std::vector<OutboxMessage> rows_;
  std::size_t at_ = 0;
};

/// Merges what waits and what is set aside by its sequences. Inside one read.
class Merge {
 public:
  Merge(Connection& connection, Locator& locator, const MessageQuery& query)
      : connection_{connection},
        locator_{locator},
        query_{query},
        is_backward_{query.direction == Direction::backward} {
    const auto state = query.state;
    const bool waits = !state || *state == MessageState::pending ||
                       *state == MessageState::in_flight || *state == MessageState::retrying;
    if (waits) add_waiting();
    if (!state || *state == MessageState::parked) {
      add_set_aside<sql::list_parked, sql::list_parked_backward>(MessageState::parked);
    }
    if (state == MessageState::discarded) {
      add_set_aside<sql::list_discarded, sql::list_discarded_backward>(MessageState::discarded);
    }
  }

  /// The next ones, not more than these; fewer only at the end.
  std::vector<OutboxMessage> next(std::int64_t most) {
    std::vector<OutboxMessage> found;
    const std::int64_t rows = std::min(most, page_rows);
    while (static_cast<std::int64_t>(found.size()) < rows) {
      Source* nearest = nullptr;
      GlobalSequence place;
      for (Source& source : sources_) {
        const OutboxMessage* const head = source.head(rows, is_backward_);
        if (head == nullptr) continue;
        const bool is_nearer = is_backward_ ? head->sequence > place : head->sequence < place;
        if (nearest != nullptr && !is_nearer) continue;
        nearest = &source;
        place = head->sequence;
      }
      if (nearest == nullptr) break;
      found.push_back(nearest->take());
    }
    return found;
  }

 private:
  void add_waiting() {
    auto all = connection_.rows(sql::partitions{});
    bool is_known = false;
    std::vector<std::pair<std::int64_t, bool>> partitions;
    while (all.step()) {
      if (query_.partition && all.partition() != query_.partition->number) continue;
      is_known = true;
      partitions.emplace_back(all.partition(), all.has_redeliveries());
    }
    if (query_.partition && !is_known) partitions.emplace_back(query_.partition->number, true);
    for (const auto& [number, has_redeliveries] : partitions) {
      Range range = range_of(query_);
      if (query_.state == MessageState::in_flight) {
        range.high = std::min(range.high, locator_.flight_through({static_cast<int>(number)}));
      }
      if (query_.state == MessageState::retrying) {
        add_of<sql::list_retrying, sql::list_retrying_backward>(number, range);
      } else {
        add_of<sql::list_waiting, sql::list_waiting_backward>(number, range);
      }
      if (!has_redeliveries) continue;
      add_of<sql::list_redeliveries, sql::list_redeliveries_backward>(number, range);
    }
  }

  template <class Forward, class Backward>
  void add_of(std::int64_t partition, const Range& range) {
    const auto fetch = [this, partition](const Range& part, std::int64_t most, auto& into) {
      sql::waiting_row rows = is_backward_ ? waiting<Backward>(partition, part, most)
                                           : waiting<Forward>(partition, part, most);
      while (rows.step()) into.push_back(locator_.read_waiting(rows));
    };
    sources_.emplace_back(fetch, range);
  }
  template <class Statement>
  sql::waiting_row waiting(std::int64_t partition, const Range& part, std::int64_t most) {
    return connection_.rows(
        Statement{.partition = partition, .low = part.low, .high = part.high, .most = most});
  }

  template <class Forward, class Backward>
  void add_set_aside(MessageState state) {
    const auto fetch = [this, state](const Range& part, std::int64_t most, auto& into) {
      sql::set_aside_row rows =
          is_backward_ ? set_aside<Backward>(part, most) : set_aside<Forward>(part, most);
      while (rows.step()) into.push_back(read_set_aside(rows, state));
    };
    sources_.emplace_back(fetch, range_of(query_));
  }
  template <class Statement>
  sql::set_aside_row set_aside(const Range& part, std::int64_t most) {
    return connection_.rows(Statement{.low = part.low, .high = part.high, .most = most});
  }

  Connection& connection_;
  Locator& locator_;
  const MessageQuery& query_;
  const bool is_backward_;
  std::vector<Source> sources_;
};

/// A page in the making.
class Filling {
 public:
  explicit Filling(const MessageQuery& query) : query_{query} {}

  bool goes_on() const noexcept { return !page_.next && may_look() > 0; }
  /// So many rows.
  std::int64_t may_look() const noexcept {
    const auto found = static_cast<std::int64_t>(page_.messages.size());
    return query_.most_looked - std::max<std::int64_t>(page_.looked - found * looked_for_each, 0);
  }
  /// So many rows fill it, and show that there is another one.
  std::int64_t room() const noexcept {
    return query_.limit + 1 - static_cast<std::int64_t>(page_.messages.size());
  }
  void look(std::int64_t rows) noexcept { page_.looked += rows; }
  /// False if there is no room: the page ends before it.
  bool add(OutboxMessage&& message) {
    if (room() > 1) {
      page_.messages.push_back(std::move(message));
      return true;
    }
    page_.next = page_.messages.back().sequence;
    return false;
  }
  /// It looked at everything up to this sequence.
  MessagePage finish(std::int64_t looked_to, bool has_more) && {
    if (!page_.next && has_more) page_.next = GlobalSequence{looked_to};
    return std::move(page_);
  }

 private:
  const MessageQuery& query_;
  MessagePage page_;
};

/// What waits, and what is set aside.
MessagePage list_rows(Connection& connection, Locator& locator, const MessageQuery& query) {
  const Choice choice{query};
  Merge merge{connection, locator, query};
  Filling page{query};
  GlobalSequence last;
  bool has_more = true;
  while (has_more && page.goes_on()) {
    // Mostly all that is read is shown; but not if a state is rare.
    const bool is_first = last.value() == 0;
    std::vector<OutboxMessage> found =
        merge.next(choice.is_of_all() && is_first ? page.room() : page.may_look());
    has_more = !found.empty();
    if (!has_more) break;
    last = found.back().sequence;
    page.look(static_cast<std::int64_t>(found.size()));
    std::erase_if(found, [&](const OutboxMessage& message) { return !choice.takes(message); });
    locator.complete(found);
    for (OutboxMessage& message : found) {
      if (choice.takes_event_of(message) && !page.add(std::move(message))) break;
    }
  }
  return std::move(page).finish(last.value(), has_more);
}

/// The end of what can be published.
std::int64_t last_published(Connection& connection) {
  auto last = connection.rows(sql::last_published{});
  last.step();
  return last.sequence();
}

/// Finds events that are published, a page at a time.
class Events {
 public:
  Events(const MessageQuery& query, Range left)
      : query_{query}, is_backward_{query.direction == Direction::backward}, left_{left} {}

  bool is_at_end() const noexcept { return left_.is_empty(); }
  /// Everything before it was looked at.
  std::int64_t looked_to() const noexcept { return is_backward_ ? left_.high + 1 : left_.low - 1; }

  /// The next ones of the type that is chosen; nothing if a page has none.
  std::vector<GlobalSequence> next(Connection& connection) {
    found_.clear();
    const bool is_of_stream = !query_.stream.empty();
    if (is_of_stream) {
      find_of_stream(connection);
    } else {
      find_of_all(connection);
    }
    return found_;
  }

 private:
  void find_of_all(Connection& connection) {
    Range part = left_;
    if (is_backward_) {
      part.low = std::max(part.low, part.high - window + 1);
    } else {
      part.high = std::min(part.high, part.low + window - 1);
    }
    const bool is_full = is_backward_
                             ? take(connection.rows(sql::publishable_events_backward{
                                   .first = part.low, .last = part.high, .most = page_rows}))
                             : take(connection.rows(sql::publishable_events{
                                   .first = part.low, .last = part.high, .most = page_rows}));
    if (!is_full) left_.pass(is_backward_ ? part.low : part.high, is_backward_);
  }

  void find_of_stream(Connection& connection) {
    auto number = connection.rows(sql::stream_number{.name = query_.stream});
    if (!number.step()) throw NotFound{"there is no stream '" + query_.stream + "'"};
    const std::int64_t stream = number.stream();
    const bool is_full =
        is_backward_
            ? take(connection.rows(sql::publishable_of_stream_backward{
                  .stream = stream, .low = left_.low, .high = left_.high, .most = page_rows}))
            : take(connection.rows(sql::publishable_of_stream{
                  .stream = stream, .low = left_.low, .high = left_.high, .most = page_rows}));
    if (!is_full) left_ = {1, 0};
  }

  /// False if there are no more in the range.
  bool take(sql::publishable_row rows) {
    std::int64_t seen = 0;
    for (; rows.step(); ++seen) {
      left_.pass(rows.sequence(), is_backward_);
      if (query_.type.empty() || rows.type() == query_.type) found_.emplace_back(rows.sequence());
    }
    return seen == page_rows;
  }

  const MessageQuery& query_;
  const bool is_backward_;
  Range left_;
  std::vector<GlobalSequence> found_;
};

/// Goes through events, not through what waits.
MessagePage list_events(Store& store, const Partitioner& partitioner, const MessageQuery& query) {
  const Choice choice{query};
  Range range = range_of(query);
  store.database().read([&](Connection& connection) {
    const std::int64_t last = query.state == MessageState::published
                                  ? last_published(connection)
                                  : store.last_sequence().value();
    range.high = std::min(range.high, last);
  });
  Events events{query, range};
  Filling page{query};
  while (!events.is_at_end() && page.goes_on()) {
    store.database().read([&](Connection& connection) {
      const std::int64_t before = events.looked_to();
      const std::vector<GlobalSequence> found = events.next(connection);
      const auto rows = static_cast<std::int64_t>(found.size()) * cost_of_event;
      page.look(query.stream.empty() ? rows + std::abs(events.looked_to() - before) : rows + 1);
      Placement placement{connection, store.database(), partitioner};
      Locator locator{connection, placement, store.database().now()};
      // The events of a stream may be far apart.
      if (query.stream.empty() && !found.empty()) {
        const auto [first, last] = std::minmax(found.front(), found.back());
        locator.expect(first.value(), last.value());
      }
      for (const GlobalSequence sequence : found) {
        auto located = locator.find(sequence);
        if (!located || located->is_missing || !choice.takes(located->message) ||
            !choice.takes_event_of(located->message)) {
          continue;
        }
        if (!page.add(std::move(located->message))) break;
      }
    });
  }
  return std::move(page).finish(events.looked_to(), !events.is_at_end());
}

}  // namespace

MessagePage list_messages(Store& store, const Partitioner& partitioner, const MessageQuery& query) {
  if (!query.stream.empty() || query.state == MessageState::published) {
    return list_events(store, partitioner, query);
  }
  MessagePage page;
  store.database().read([&](Connection& connection) {
    Placement placement{connection, store.database(), partitioner};
    Locator locator{connection, placement, store.database().now()};
    page = list_rows(connection, locator, query);
  });
  return page;
}

}  // namespace stela::outbox
