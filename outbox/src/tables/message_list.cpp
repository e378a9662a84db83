// Pages of messages, for operators.
#include "tables/outbox_view.hpp"

#include "database/database.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/states.hpp"
#include "tables/generations.hpp"
#include "tables/locator.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace stela::outbox {

using database::Connection;

namespace {

/// The first window's sequences; windows grow where messages are rare.
constexpr std::int64_t first_window = 1024;
constexpr std::int64_t growth = 4;
constexpr std::size_t few_rows = 512;
/// A window with this many rows is split.
constexpr std::int64_t most_rows = 4096;
constexpr std::size_t expected_at_once = 128;
/// How many rows each found message allows to be examined, besides the query's own limit.
constexpr std::int64_t looked_for_each = 20;
/// The cost of looking up an event, which takes several statements, in rows.
constexpr std::int64_t cost_of_event = 10;

std::string in_lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// A range of sequences, including both ends.
struct Range {
  std::int64_t low;
  std::int64_t high;
};

/// Collects one page.
/// Threads: one at a time.
class MessageList {
 public:
  MessageList(Store& store, const Partitioner& partitioner, const MessageQuery& query)
      : store_{store}, partitioner_{partitioner}, query_{query} {}

  MessagePage read() {
    read_each([&](Connection& connection, Locator& locator) {
      left_.high = std::min(left_.high, last_of_all(connection, locator));
    });
    if (query_.stream.empty()) {
      read_windows();
    } else {
      read_stream();
    }
    return std::move(page_);
  }

 private:
  bool is_of_events() const noexcept {
    return !query_.stream.empty() || query_.state == MessageState::published;
  }
  bool is_state(MessageState state) const noexcept {
    if (query_.state) return state == *query_.state;
    return state != MessageState::published && state != MessageState::discarded;
  }
  bool waits() const noexcept {
    return is_state(MessageState::pending) || is_state(MessageState::in_flight) ||
           is_state(MessageState::retrying);
  }

  static Range range_of(const MessageQuery& query) {
    Range range{std::max<std::int64_t>(query.from.value(), 1), query.to.value()};
    const std::int64_t after = query.after.value();
    if (query.direction == Direction::forward) {
      range.low = std::max(range.low, after + 1);
    } else if (after > 0) {
      range.high = std::min(range.high, after - 1);
    }
    return range;
  }

  template <class Work>
  void read_each(Work work) {
    store_.database().read([&](Connection& connection) {
      Placement placement{connection, store_.database(), partitioner_};
      Locator locator{connection, placement, store_.database().now()};
      work(connection, locator);
    });
  }

  /// The last sequence that can be in the state.
  std::int64_t last_of_all(Connection& connection, Locator& locator) {
    if (query_.state == MessageState::published) {
      auto last = connection.rows(sql::last_published{});
      last.step();
      return last.sequence();
    }
    if (query_.state != MessageState::in_flight) return last_event(connection);
    std::int64_t last = 0;
    auto partitions = connection.rows(sql::partitions{});
    while (partitions.step()) {
      last = std::max(last, locator.flight_through({static_cast<int>(partitions.partition())}));
    }
    return last;
  }

  void read_windows() {
    std::int64_t width = first_window;
    while (left_.low <= left_.high && !page_.next) {
      Range part = left_;
      if (is_backward_) {
        part.low = left_.high - left_.low < width ? left_.low : left_.high - width + 1;
      } else {
        part.high = left_.high - left_.low < width ? left_.high : left_.low + width - 1;
      }
      std::vector<OutboxMessage> found;
      read_each([&](Connection& connection, Locator& locator) {
        if (!find(connection, locator, part, found)) {
          width = std::max<std::int64_t>(width / growth, 1);
          return;
        }
        if (found.size() < few_rows) width = std::min(width, left_.high) * growth;
        (is_backward_ ? left_.high : left_.low) = is_backward_ ? part.low - 1 : part.high + 1;
        std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
          return is_backward_ ? a.sequence > b.sequence : a.sequence < b.sequence;
        });
        if (is_of_events()) locator.expect(part.low, part.high);
        take(locator, found);
      });
    }
  }

  /// Finds the messages of a window, without reading events. False if there are too many.
  bool find(Connection& connection, Locator& locator, const Range& part,
            std::vector<OutboxMessage>& found) {
    std::optional<std::int64_t> partition;
    if (query_.partition) partition = query_.partition->number;
    const auto waiting = [&]<class Statement>(Statement) {
      auto rows = connection.rows(Statement{
          .first = part.low, .last = part.high, .partition = partition, .most = most_rows});
      while (rows.step()) found.push_back(locator.read_waiting(rows));
    };
    const auto set_aside = [&]<class Statement>(Statement, MessageState state) {
      auto rows =
          connection.rows(Statement{.first = part.low, .last = part.high, .most = most_rows});
      while (rows.step()) found.push_back(read_set_aside(rows, state));
    };
    if (query_.state == MessageState::published) {
      auto rows = connection.rows(
          sql::publishable_events{.first = part.low, .last = part.high, .most = most_rows});
      for (; rows.step(); ++cost_) {
        if (!query_.type.empty() && rows.type() != query_.type) {
          ++page_.looked;
          continue;
        }
        found.push_back({.sequence = GlobalSequence{rows.sequence()}});
      }
    }
    if (query_.state == MessageState::retrying) {
      waiting(sql::list_retrying{});
    } else if (waits()) {
      waiting(sql::list_waiting{});
    }
    if (waits()) waiting(sql::list_redeliveries{});
    if (is_state(MessageState::parked)) set_aside(sql::list_parked{}, MessageState::parked);
    if (is_state(MessageState::discarded)) {
      set_aside(sql::list_discarded{}, MessageState::discarded);
    }
    return part.low == part.high || static_cast<std::int64_t>(found.size()) < most_rows;
  }

  /// A stream's events may be anywhere in the store.
  void read_stream() {
    const StreamId stream = StreamId::parse(query_.stream);
    if (store_.read_stream(stream, {.limit = 1}).next_page().empty()) {
      throw NotFound{"there is no stream '" + query_.stream + "'"};
    }
    std::vector<OutboxMessage> found;
    const auto look = [&] {
      read_each([&](Connection&, Locator& locator) { take(locator, found); });
      found.clear();
    };
    for (const StoredEvent& event : store_.read_stream(
             stream, {.up_to = GlobalSequence{left_.high}, .direction = query_.direction})) {
      if (page_.next || (is_backward_ && event.sequence.value() < left_.low)) break;
      if (event.sequence.value() < left_.low || !event.publishes()) continue;
      found.push_back({.sequence = event.sequence});
      if (found.size() == few_rows) look();
    }
    if (!page_.next) look();
  }

  /// Adds matching messages until the page is full.
  void take(Locator& locator, std::vector<OutboxMessage>& found) {
    const bool needs_events = !query_.type.empty() || query_.since || query_.until;
    if (needs_events && !is_of_events()) locator.add_types(found);
    const std::size_t begin = page_.messages.size();
    for (std::size_t i = 0; i < found.size(); ++i) {
      OutboxMessage& message = found[i];
      if (is_of_events() && i % expected_at_once == 0) {
        locator.expect_events(
            std::span{found}.subspan(i, std::min(expected_at_once, found.size() - i)));
      }
      const auto shown = static_cast<std::int64_t>(page_.messages.size());
      if (cost_ - shown * looked_for_each >= query_.most_looked) page_.next = last_;
      if (page_.next) break;
      last_ = message.sequence;
      ++page_.looked;
      cost_ += is_of_events() ? cost_of_event : 1;
      if (!is_chosen(locator, message)) continue;
      if (shown == query_.limit) {
        page_.next = page_.messages.back().sequence;
      } else {
        page_.messages.push_back(std::move(message));
      }
    }
    const auto added = std::span{page_.messages}.subspan(begin);
    if (!is_of_events()) locator.complete(added);
  }

  bool is_chosen(Locator& locator, OutboxMessage& message) const {
    if (is_of_events()) {
      auto located = locator.find(message.sequence);
      if (!located || located->is_missing) return false;
      message = std::move(located->message);
    }
    return is_state(message.state) &&
           (!query_.partition || message.partition == *query_.partition) &&
           (query_.type.empty() || message.type == query_.type) &&
           (!query_.since || message.recorded_at >= *query_.since) &&
           (!query_.until || message.recorded_at <= *query_.until) &&
           (error_.empty() || in_lower_case(message.last_error).find(error_) != std::string::npos);
  }

  Store& store_;
  const Partitioner& partitioner_;
  const MessageQuery& query_;
  const std::string error_ = in_lower_case(query_.error);
  const bool is_backward_ = query_.direction == Direction::backward;
  Range left_ = range_of(query_);
  MessagePage page_;
  /// Measured in examined rows.
  std::int64_t cost_ = 0;
  /// The last message examined.
  GlobalSequence last_ = query_.after;
};

}  // namespace

MessagePage OutboxView::page(const MessageQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  if (query.partition) require_partition(*query.partition);
  return MessageList{store_, partitioner_, query}.read();
}

}  // namespace stela::outbox
