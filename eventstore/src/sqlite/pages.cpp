#include "sqlite/pages.hpp"

#include "sqlite/candidates.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/one_state.hpp"
#include "sqlite/tag_places.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace stela::sqlite {
namespace {

using ledger::Range;

std::string json_array(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string array = "[";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    json::append_string(array, text);
  }
  return array + ']';
}

std::int64_t rows_in(const EventPage& page) noexcept {
  return static_cast<std::int64_t>(page.events().size());
}

class Pages final : public ledger::Pages {
 public:
  Pages(Reading& reading, KindTable& kinds) noexcept : reading_{reading}, kinds_{kinds} {}

  void read(FunctionRef<std::int64_t(database::Connection&)> work) override {
    reading_.read([&](Connection& connection) { work(connection); });
  }
  void trim() noexcept override { names_.trim(); }
  bool is_far() const noexcept override { return false; }

  std::int64_t last_sequence(database::Connection& connection) override {
    return sqlite::last_sequence(connection_of(connection));
  }

  bool add_stream(database::Connection& connection, const StreamId& stream,
                  const StreamQuery& query, std::int64_t wanted, Succession& succession,
                  EventPage& page) override {
    Connection& own = connection_of(connection);
    auto found =
        query.direction == Direction::forward
            ? find<sql::read_stream>(own, stream, query, last_of_page(query, wanted), wanted)
            : find<sql::read_stream_backward>(own, stream, query, query.to.value(), wanted);
    EventRows reader = rows(own, query.with_tags);
    reader.stream = &stream;
    reader.succession = &succession;
    return reader.fill(page, found) && rows_in(page) < wanted;
  }

  std::optional<Range> next_range(database::Connection& connection, const AllQuery& query,
                                  const Range& left) override {
    if (!candidates_) {
      streams_ = json_array(query.streams);
      categories_ = json_array(query.categories);
      types_ = json_array(query.event_types);
      candidates_ = find_candidates(query, categories_, types_);
    }
    return candidates_->next(connection_of(connection), left);
  }

  bool add_filtered(database::Connection& connection, const AllQuery& query, const Range& range,
                    std::int64_t wanted, EventPage& page) override {
    Connection& own = connection_of(connection);
    auto found = query.direction == Direction::forward
                     ? filter<sql::read_all_filtered>(own, query, range, wanted)
                     : filter<sql::read_all_filtered_backward>(own, query, range, wanted);
    return add(own, query, found, wanted, page);
  }

  bool add_range(database::Connection& connection, const AllQuery& query, const Range& range,
                 std::int64_t wanted, Succession& succession, EventPage& page) override {
    Connection& own = connection_of(connection);
    const std::int64_t from = range.begin;
    const std::int64_t to = range.end;
    auto found = query.direction == Direction::forward
                     ? own.rows(sql::read_all{.from = from, .to = to, .limit = wanted})
                     : own.rows(sql::read_all_backward{.from = from, .to = to, .limit = wanted});
    return add(own, query, found, wanted, page, &succession);
  }

  std::int64_t add_matching(database::Connection& connection, const stela::Query& query,
                            Direction direction, const Range& left, std::int64_t wanted,
                            EventPage& page) override {
    Connection& own = connection_of(connection);
    if (!places_) places_ = places_of(query, kinds_, direction);
    const bool is_forward = direction == Direction::forward;
    const std::int64_t step = is_forward ? 1 : -1;
    // Each event takes several statements: alone, each would lock the file and look for commits.
    const OneState state{own};
    EventRows reader = rows(own, true);
    std::int64_t at = is_forward ? left.begin : left.end;
    // Places may belong to other events, whose tags have the same hash.
    for (std::int64_t looked = 0; looked < most_rows && rows_in(page) < wanted; ++looked) {
      const auto place = places_->next(own, at);
      if (!place || *place < left.begin || *place > left.end) {
        return is_forward ? left.end : left.begin;
      }
      if (!add_if_matching(own, query, reader, *place, page)) break;
      if (*place == (is_forward ? left.end : left.begin)) return *place;
      at = *place + step;
    }
    return at - step;
  }

  std::size_t add_at(database::Connection& connection, std::span<const std::int64_t> sequences,
                     EventPage& page) override {
    Connection& own = connection_of(connection);
    std::size_t next = 0;
    // Read consecutive sequences as ranges.
    while (next < sequences.size() && rows_in(page) < most_rows) {
      std::size_t end = next + 1;
      while (end < sequences.size() && end - next < std::size_t{most_rows} &&
             sequences[end] == sequences[end - 1] + 1) {
        ++end;
      }
      auto found = own.rows(
          sql::read_all{.from = sequences[next], .to = sequences[end - 1], .limit = most_rows});
      const std::int64_t before = rows_in(page);
      if (!rows(own, true).fill(page, found)) {
        return rows_in(page) == before ? next : behind(sequences, next, page);
      }
      next = end;
    }
    return next;
  }

 private:
  EventRows rows(Connection& connection, bool with_tags) noexcept {
    EventRows reader{connection, kinds_, names_};
    if (with_tags) reader.tags = &tags_;
    return reader;
  }

  template <class Statement>
  static sql::event_row find(Connection& connection, const StreamId& stream,
                             const StreamQuery& query, std::int64_t to, std::int64_t limit) {
    return connection.rows(Statement{.name = stream.name(),
                                     .from = query.from.value(),
                                     .to = to,
                                     .up_to = query.up_to.value(),
                                     .limit = limit});
  }

  /// Versions have no gaps, so a page of events has as many versions. A read up to a sequence
  /// needn't scan all later events of the stream.
  static std::int64_t last_of_page(const StreamQuery& query, std::int64_t rows) noexcept {
    const std::int64_t from = query.from.value();
    const std::int64_t to = query.to.value();
    const bool is_bounded = query.up_to != GlobalSequence::max();
    return is_bounded && to - from >= rows ? from + rows - 1 : to;
  }

  template <class Statement>
  sql::event_row filter(Connection& connection, const AllQuery& query, const Range& range,
                        std::int64_t limit) const {
    return connection.rows(
        Statement{.from = range.begin,
                  .to = range.end,
                  .limit = limit,
                  .categories = or_null(categories_),
                  .types = or_null(types_),
                  .since = query.since.value_or(Timestamp::min()),
                  .until = query.until.value_or(Timestamp::max()),
                  .streams = or_null(range.is_of_streams ? std::string_view{} : streams_)});
  }

  bool add(Connection& connection, const AllQuery& query, sql::event_row& found,
           std::int64_t wanted, EventPage& page, Succession* succession = nullptr) {
    if (query.with_tags && !has_tags_) has_tags_ = connection.rows(sql::has_tags{}).step();
    EventRows reader = rows(connection, query.with_tags && *has_tags_);
    reader.succession = succession;
    const std::int64_t before = rows_in(page);
    return reader.fill(page, found) && rows_in(page) - before < wanted;
  }

  /// False if the page ends before that place: it is full, or the event is unreadable.
  static bool add_if_matching(Connection& connection, const stela::Query& query, EventRows& reader,
                              std::int64_t place, EventPage& page) {
    try {
      auto row = connection.rows(sql::tagged_event{.sequence = place});
      if (!row.step()) {
        throw CorruptEvent{"event " + std::to_string(place) +
                           " has tags, but is missing; restore it from a backup"};
      }
      const StoredEvent event = reader.read(row);
      const bool is_match =
          std::any_of(query.items.begin(), query.items.end(),
                      [&](const QueryItem& item) { return matches(item, event); });
      return !is_match || page.add(event);
    } catch (const Error&) {
      if (page.empty()) throw;
      return false;
    }
  }

  /// How many sequences there are up to the page's last event.
  static std::size_t behind(std::span<const std::int64_t> sequences, std::size_t next,
                            const EventPage& page) {
    const std::int64_t last = page.events().back().sequence.value();
    const auto reached = static_cast<std::size_t>(
        std::upper_bound(sequences.begin(), sequences.end(), last) - sequences.begin());
    // A page of the file that replaces another one repeats its events without end.
    if (reached <= next) throw CorruptRow{sequences[next], "the events near it are out of order"};
    return reached;
  }

  Reading& reading_;
  KindTable& kinds_;
  StreamNames names_;
  /// The tags of the last event.
  std::string tags_;
  std::optional<bool> has_tags_;
  // The filter's values, as parameters of the statements.
  std::string streams_;
  std::string categories_;
  std::string types_;
  std::unique_ptr<Candidates> candidates_;
  std::unique_ptr<Places> places_;
};

}  // namespace

std::unique_ptr<ledger::Pages> make_pages(Reading& reading, KindTable& kinds) {
  return std::make_unique<Pages>(reading, kinds);
}

}  // namespace stela::sqlite
