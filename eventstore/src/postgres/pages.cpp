#include "postgres/pages.hpp"

#include "postgres/event_rows.hpp"
#include "postgres/tags.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::postgres {
namespace {

using ledger::Range;

/// How many sequences a filtered statement scans: few at first, and more where matches are rare. A
/// server without statistics of a new table may read and sort all of them.
constexpr std::int64_t first_window = 4'096;
constexpr std::int64_t longest_window = 65'536;

/// One statement for each direction.
template <class Text>
struct Directed {
  Directed(std::string_view where, std::string_view by, std::string_view limit)
      : forward{where, by, limit}, backward{where, std::string{by} + " DESC", limit} {}

  const Text& of(Direction direction) const noexcept {
    return direction == Direction::forward ? forward : backward;
  }
  Text forward;
  Text backward;
};

/// Adds NULL, or the texts, which `array` then holds.
void add_texts(Parameters& parameters, const std::vector<std::string>& texts, Array& array) {
  if (texts.empty()) {
    parameters.add_null(array.type());
    return;
  }
  for (const std::string& text : texts) array.add_bytes(text);
  parameters.add(array);
}

std::int64_t micros(std::optional<Timestamp> time, std::int64_t otherwise) noexcept {
  return time ? std::int64_t{time->time_since_epoch().count()} : otherwise;
}

class Pages final : public ledger::Pages {
 public:
  Pages(Reading& reading, KindTable& kinds) noexcept : reading_{reading}, kinds_{kinds} {}

  void read(FunctionRef<std::int64_t(database::Connection&)> work) override {
    read_durably(reading_, [&](Connection& connection) { return work(connection); });
  }
  void trim() noexcept override {
    names_.trim();
    streams_.trim();
  }
  std::int64_t rows_of_page() const noexcept override { return rows_of_page_; }
  bool is_far() const noexcept override { return true; }

  std::int64_t last_sequence(database::Connection& connection) override {
    return postgres::last_sequence(connection_of(connection));
  }

  bool add_stream(database::Connection& connection, const StreamId& stream,
                  const StreamQuery& query, std::int64_t wanted, Succession& succession,
                  EventPage& page) override {
    static const Directed<PageSql> sql{
        "e.stream = (SELECT t.stream FROM stela.streams AS t WHERE t.name = $1) "
        "AND e.version BETWEEN $2 AND $3 AND e.sequence <= $4",
        "version", "$5"};
    // Versions have no gaps, so this many fill the page, whatever plan the server chooses.
    const std::int64_t from = query.from.value();
    const bool is_longer =
        query.direction == Direction::forward && query.to.value() - from >= wanted;
    Parameters parameters;
    parameters.add(stream.name()).add(from);
    parameters.add(is_longer ? from + wanted - 1 : query.to.value());
    parameters.add(query.up_to.value()).add(wanted);
    Connection& own = connection_of(connection);
    const Result found = find(own, sql.of(query.direction), parameters, "reading a stream");
    EventRows reader = rows(own, found, query.with_tags);
    reader.stream = &stream;
    reader.succession = &succession;
    return reader.fill(page, found, wanted);
  }

  std::optional<Range> next_range(database::Connection&, const AllQuery& query,
                                  const Range& left) override {
    if (left.end - left.begin < window_) return left;
    if (query.direction == Direction::forward) return Range{left.begin, left.begin + window_ - 1};
    return Range{left.end - window_ + 1, left.end};
  }

  bool add_filtered(database::Connection& connection, const AllQuery& query, const Range& range,
                    std::int64_t wanted, EventPage& page) override {
    static const Directed<PageSql> sql{
        "e.sequence BETWEEN $1 AND $2 AND e.recorded_at BETWEEN $4 AND $5 "
        "AND ($6::text[] IS NULL OR e.stream IN "
        "(SELECT t.stream FROM stela.streams AS t WHERE t.name = ANY ($6))) "
        "AND (($7::text[] IS NULL AND $8::text[] IS NULL) OR e.kind IN "
        "(SELECT n.kind FROM stela.event_kinds AS n "
        "WHERE ($7 IS NULL OR n.category = ANY ($7)) AND ($8 IS NULL OR n.type = ANY ($8))))",
        "sequence", "$3"};
    Parameters parameters;
    parameters.add(range.begin).add(range.end).add(wanted);
    parameters.add(micros(query.since, std::numeric_limits<std::int64_t>::min()));
    parameters.add(micros(query.until, std::numeric_limits<std::int64_t>::max()));
    Array streams = Array::of_text();
    Array categories = Array::of_text();
    Array types = Array::of_text();
    add_texts(parameters, query.streams, streams);
    add_texts(parameters, query.categories, categories);
    add_texts(parameters, query.event_types, types);
    Connection& own = connection_of(connection);
    const Result found =
        find(own, sql.of(query.direction), parameters, "reading events by a filter");
    if (found.rows() < wanted / 2) window_ = std::min(2 * window_, longest_window);
    return add(own, found, query, wanted, page);
  }

  bool add_range(database::Connection& connection, const AllQuery& query, const Range& range,
                 std::int64_t wanted, Succession& succession, EventPage& page) override {
    static const Directed<PageSql> sql{"e.sequence BETWEEN $1 AND $2", "sequence", "$3"};
    Parameters parameters;
    parameters.add(range.begin).add(range.end).add(wanted);
    Connection& own = connection_of(connection);
    const Result found = find(own, sql.of(query.direction), parameters, "reading events");
    return add(own, found, query, wanted, page, &succession);
  }

  /// Finds the sequences first, and then reads the events.
  std::int64_t add_matching(database::Connection& connection, const stela::Query& query,
                            Direction direction, const Range& left, std::int64_t wanted,
                            EventPage& page) override {
    static const Directed<PageText> sql{"e.sequence = ANY ($1)", "sequence", "$2"};
    Connection& own = connection_of(connection);
    Array sequences = Array::of_int8();
    const std::int64_t places = find_places(own, query, direction, left, wanted, sequences);
    Parameters parameters;
    parameters.add(sequences).add(wanted);
    const Result found =
        own.query(sql.of(direction).text, std::move(parameters), "reading events by a query");
    const bool is_complete = rows(own, found, true).fill(page, found, wanted);
    if (page.empty() || (is_complete && places < wanted)) {
      return direction == Direction::forward ? left.end : left.begin;
    }
    return page.events().back().sequence.value();
  }

  std::size_t add_at(database::Connection& connection, std::span<const std::int64_t> sequences,
                     EventPage& page) override {
    static const std::string sql = page_sql("e.sequence = ANY ($1)", "sequence", "$2");
    const auto asked = sequences.first(std::min(sequences.size(), std::size_t{most_rows}));
    Array wanted = Array::of_int8();
    for (const std::int64_t sequence : asked) wanted.add(sequence);
    Parameters parameters;
    parameters.add(wanted).add(most_rows + 1);
    Connection& own = connection_of(connection);
    const Result found = own.query(sql, std::move(parameters), "reading events by their sequences");
    if (rows(own, found, true).fill(page, found, most_rows + 1)) return asked.size();
    const auto reached =
        std::upper_bound(asked.begin(), asked.end(), page.events().back().sequence.value());
    return static_cast<std::size_t>(reached - asked.begin());
  }

 private:
  /// A text from `page_sql`.
  struct PageText {
    PageText(std::string_view where, std::string_view order, std::string_view limit)
        : text{page_sql(where, order, limit)} {}
    std::string text;
  };

  EventRows rows(Connection& connection, const Result& found, bool with_tags) {
    EventRows reader{kinds_, names_};
    if (!with_tags) return reader;
    Array sequences = EventRows::sequences_of(found);
    tags_ = read_tags(connection, sequences);
    reader.tags = &tags_;
    return reader;
  }

  bool add(Connection& connection, const Result& found, const AllQuery& query, std::int64_t wanted,
           EventPage& page, Succession* succession = nullptr) {
    streams_.learn(connection, found);
    EventRows reader = rows(connection, found, query.with_tags);
    reader.numbers = &streams_;
    reader.succession = succession;
    return reader.fill(page, found, wanted);
  }

  Result find(Connection& connection, const PageSql& sql, const Parameters& parameters,
              std::string_view doing) {
    if (!is_large_) {
      Result found = connection.query(sql.quick, parameters, doing);
      if (!EventRows::begins_with_large(found)) {
        rows_of_page_ = rows_like(found);
        return found;
      }
    }
    Result found = connection.query(sql.bounded, parameters, doing);
    is_large_ = EventRows::has_large(found);
    return found;
  }

  /// Adds the sequences of the next page, at most `wanted`. Returns how many it added.
  static std::int64_t find_places(Connection& connection, const stela::Query& query,
                                  Direction direction, const Range& left, std::int64_t wanted,
                                  Array& sequences) {
    sql::item_rows items;
    add_query_items(query, items);
    const std::int64_t after = left.begin - 1;
    auto places = direction == Direction::forward
                      ? connection.rows(sql::places{
                            .items = items, .after = after, .to = left.end, .limit = wanted})
                      : connection.rows(sql::places_backward{
                            .items = items, .after = after, .to = left.end, .limit = wanted});
    std::int64_t count = 0;
    for (; places.step(); ++count) sequences.add(places.sequence());
    return count;
  }

  /// How many rows like these fill a page.
  static std::int64_t rows_like(const Result& found) noexcept {
    if (found.rows() == 0) return most_rows;
    const std::int64_t each = std::max<std::int64_t>(EventRows::bytes_of(found) / found.rows(), 1);
    return std::clamp<std::int64_t>(page_bytes / each, 1, most_rows);
  }

  Reading& reading_;
  KindTable& kinds_;
  StreamNames names_;
  StreamNumbers streams_;
  /// The tags of the last events found.
  std::map<std::int64_t, std::string> tags_;
  std::int64_t rows_of_page_ = most_rows;
  /// The last page had large payloads.
  bool is_large_ = false;
  std::int64_t window_ = first_window;
};

}  // namespace

std::unique_ptr<ledger::Pages> make_pages(Reading& reading, KindTable& kinds) {
  return std::make_unique<Pages>(reading, kinds);
}

}  // namespace stela::postgres
