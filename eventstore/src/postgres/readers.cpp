#include "postgres/readers.hpp"

#include "postgres/event_rows.hpp"
#include "postgres/tags.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::postgres {
namespace {

constexpr std::int64_t first_page_rows = 128;
constexpr std::int64_t page_rows = 1024;
/// So many sequences one statement looks at, if it chooses among them: few at first, and more where
/// it finds few. A server without statistics of a new table may read and sort all of them.
constexpr std::int64_t first_window = 4'096;
constexpr std::int64_t longest_window = 65'536;

/// What all cursors have in common: pages, and what their events point to.
class Cursor : public EventCursor {
 public:
  Cursor(Reading& reading, KindTable& kinds) noexcept : reading_{reading}, kinds_{kinds} {}

  std::span<const StoredEvent> next_page() final {
    page_.clear();
    names_.trim();
    page_.grow();
    ++pages_;
    if (is_done()) return {};
    read_durably(reading_, [&](Connection& connection) {
      // What was read before may be lost.
      page_.clear();
      const std::int64_t bound = fill(connection);
      return page_.empty() ? bound : std::max(bound, newest());
    });
    pass();
    return page_.events();
  }

 protected:
  virtual bool is_done() const noexcept = 0;
  /// Adds events to the page, and none only if there are none left. Maybe again, from the same
  /// place. The sequence that it takes for granted from now on, besides those of the page; or 0.
  virtual std::int64_t fill(Connection& connection) = 0;
  /// Moves on behind the page.
  virtual void pass() = 0;

  EventRows rows() noexcept { return {kinds_, names_}; }
  /// The same, with the tags of what was found.
  EventRows tagged_rows(Connection& connection, const Result& found) {
    Array sequences = EventRows::sequences_of(found);
    tags_ = read_tags(connection, sequences);
    EventRows reader = rows();
    reader.tags = &tags_;
    return reader;
  }
  std::int64_t rows_wanted(std::int64_t limit) const noexcept {
    return std::min(limit, pages_ <= 1 ? first_page_rows : rows_of_page_);
  }
  /// A page of events.
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

  EventPage page_;

 private:
  std::int64_t newest() const noexcept {
    const auto events = page_.events();
    return std::max(events.front().sequence, events.back().sequence).value();
  }

  /// So many rows like these fill a page.
  static std::int64_t rows_like(const Result& found) noexcept {
    if (found.rows() == 0) return page_rows;
    const std::int64_t each = std::max<std::int64_t>(EventRows::bytes_of(found) / found.rows(), 1);
    return std::clamp<std::int64_t>(page_bytes / each, 1, page_rows);
  }

  Reading& reading_;
  KindTable& kinds_;
  StreamNames names_;
  std::int64_t rows_of_page_ = page_rows;
  /// The last page had large payloads.
  bool is_large_ = false;
  std::map<std::int64_t, std::string> tags_;
  int pages_ = 0;
};

class StreamCursor final : public Cursor {
 public:
  StreamCursor(Reading& reading, KindTable& kinds, const StreamId& stream, const StreamQuery& query)
      : Cursor{reading, kinds}, stream_{stream}, query_{query} {
    query_.from = std::max(query_.from, StreamVersion{1});
    done_ = query_.from > query_.to || query_.limit <= 0;
    if (is_forward()) {
      succession_.next = query_.from.value();
    } else {
      succession_.step = -1;
    }
  }

 private:
  bool is_forward() const noexcept { return query_.direction == Direction::forward; }
  bool is_done() const noexcept override { return done_; }

  std::int64_t fill(Connection& connection) override {
    const std::int64_t wanted = rows_wanted(query_.limit);
    Parameters parameters;
    // Versions have no gaps: so many hold the page, whichever way the server finds them.
    const std::int64_t from = query_.from.value();
    const std::int64_t to =
        is_forward() && query_.to.value() - from >= wanted ? from + wanted - 1 : query_.to.value();
    parameters.add(stream_.name()).add(from).add(to);
    parameters.add(query_.up_to.value()).add(wanted);
    const Result found = find(connection, is_forward() ? forward_sql() : backward_sql(), parameters,
                              "reading a stream");
    passed_ = succession_;
    EventRows reader = query_.with_tags ? tagged_rows(connection, found) : rows();
    reader.stream = &stream_;
    reader.succession = &passed_;
    has_ended_ = reader.fill(page_, found, wanted);
    // Forward, nobody knows where the stream ends; backward, it ends where it began.
    const bool is_short = has_ended_ && !is_forward() && passed_.next >= query_.from.value();
    if (is_short && page_.empty()) passed_.fail_at_end(&stream_);
    if (is_short) has_ended_ = false;
    return 0;
  }

  void pass() override {
    succession_ = passed_;
    query_.limit -= static_cast<std::int64_t>(page_.events().size());
    done_ = has_ended_ || query_.limit <= 0 || page_.empty() || succession_.next == 0;
    if (!page_.empty()) (is_forward() ? query_.from : query_.to) = StreamVersion{succession_.next};
    done_ = done_ || query_.from > query_.to;
  }

  static PageSql sql(std::string_view order) {
    return PageSql(
        "e.stream = (SELECT t.stream FROM stela.streams AS t WHERE t.name = $1) "
        "AND e.version BETWEEN $2 AND $3 AND e.sequence <= $4",
        order, "$5");
  }
  static const PageSql& forward_sql() {
    static const PageSql text = sql("version");
    return text;
  }
  static const PageSql& backward_sql() {
    static const PageSql text = sql("version DESC");
    return text;
  }

  const StreamId stream_;
  StreamQuery query_;
  Succession succession_{.of = Succession::Of::versions};
  Succession passed_;
  bool has_ended_ = false;
  bool done_ = false;
};

/// NULL, or the texts.
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

class AllCursor final : public Cursor {
 public:
  AllCursor(Reading& reading, KindTable& kinds, const AllQuery& query)
      : Cursor{reading, kinds},
        query_{query},
        from_{std::max<std::int64_t>(query.from.value(), 1)},
        to_{query.to.value()},
        limit_{query.limit},
        is_forward_{query.direction == Direction::forward},
        is_filtered_{!query.streams.empty() || !query.categories.empty() ||
                     !query.event_types.empty() || query.since || query.until} {}

 private:
  /// Of sequences; both ends belong to it.
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };

  bool is_done() const noexcept override { return from_ > to_ || limit_ <= 0; }

  std::int64_t fill(Connection& connection) override {
    if (!is_bounded_) to_ = std::min(query_.to.value(), last_sequence(connection));
    reached_ = is_forward_ ? from_ - 1 : to_ + 1;
    while (page_.empty() && (is_forward_ ? reached_ < to_ : reached_ > from_)) {
      read_range(connection, next_range());
    }
    // Later pages find all that was there.
    return is_bounded_ ? 0 : std::max<std::int64_t>(to_, 0);
  }

  Range next_range() const noexcept {
    // Sequences have no gaps: so many hold the page.
    const std::int64_t width = is_filtered_ ? window_ : rows_wanted(limit_);
    if (is_forward_) return {reached_ + 1, std::min(to_, reached_ + width)};
    return {std::max(from_, reached_ - width), reached_ - 1};
  }

  void read_range(Connection& connection, const Range& range) {
    const std::int64_t wanted = rows_wanted(limit_);
    const Result found = is_filtered_ ? find_filtered(connection, range, wanted)
                                      : find_all(connection, range, wanted);
    Succession succession{.of = Succession::Of::sequences,
                          .next = is_forward_ ? range.begin : range.end,
                          .step = is_forward_ ? 1 : -1};
    streams_.learn(connection, found);
    EventRows reader = query_.with_tags ? tagged_rows(connection, found) : rows();
    reader.numbers = &streams_;
    if (!is_filtered_) reader.succession = &succession;
    const bool is_complete = reader.fill(page_, found, wanted);
    const bool is_missing =
        is_complete && !is_filtered_ && succession.next != 0 &&
        (is_forward_ ? succession.next <= range.end : succession.next >= range.begin);
    if (is_missing && page_.empty()) succession.fail_at_end(nullptr);
    if (is_complete && !is_missing) {
      reached_ = is_forward_ ? range.end : range.begin;
      if (found.rows() < wanted / 2) window_ = std::min(2 * window_, longest_window);
    } else {
      reached_ = page_.events().back().sequence.value();
    }
  }

  Result find_all(Connection& connection, const Range& range, std::int64_t wanted) {
    static const std::string where = "e.sequence BETWEEN $1 AND $2";
    static const PageSql forward{where, "sequence", "$3"};
    static const PageSql backward{where, "sequence DESC", "$3"};
    Parameters parameters;
    parameters.add(range.begin).add(range.end).add(wanted);
    return find(connection, is_forward_ ? forward : backward, parameters, "reading events");
  }

  Result find_filtered(Connection& connection, const Range& range, std::int64_t wanted) {
    static const std::string where =
        "e.sequence BETWEEN $1 AND $2 AND e.recorded_at BETWEEN $4 AND $5 "
        "AND ($6::text[] IS NULL OR e.stream IN "
        "(SELECT t.stream FROM stela.streams AS t WHERE t.name = ANY ($6))) "
        "AND (($7::text[] IS NULL AND $8::text[] IS NULL) OR e.kind IN "
        "(SELECT n.kind FROM stela.event_kinds AS n "
        "WHERE ($7 IS NULL OR n.category = ANY ($7)) AND ($8 IS NULL OR n.type = ANY ($8))))";
    static const PageSql forward{where, "sequence", "$3"};
    static const PageSql backward{where, "sequence DESC", "$3"};
    Parameters parameters;
    parameters.add(range.begin).add(range.end).add(wanted);
    parameters.add(micros(query_.since, std::numeric_limits<std::int64_t>::min()));
    parameters.add(micros(query_.until, std::numeric_limits<std::int64_t>::max()));
    Array streams = Array::of_text();
    Array categories = Array::of_text();
    Array types = Array::of_text();
    add_texts(parameters, query_.streams, streams);
    add_texts(parameters, query_.categories, categories);
    add_texts(parameters, query_.event_types, types);
    return find(connection, is_forward_ ? forward : backward, parameters,
                "reading events by a filter");
  }

  void pass() override {
    is_bounded_ = true;
    limit_ -= static_cast<std::int64_t>(page_.events().size());
    (is_forward_ ? from_ : to_) = reached_ + (is_forward_ ? 1 : -1);
  }

  const AllQuery query_;
  std::int64_t from_;
  std::int64_t to_;
  std::int64_t limit_;
  const bool is_forward_;
  const bool is_filtered_;
  bool is_bounded_ = false;
  std::int64_t window_ = first_window;
  StreamNumbers streams_;
  /// The last sequence that was looked at.
  std::int64_t reached_ = 0;
};

/// Reads the events that match a query: first where they are, then what they are.
class QueryCursor final : public Cursor {
 public:
  QueryCursor(Reading& reading, KindTable& kinds, const stela::Query& query,
              const QueryRange& range)
      : Cursor{reading, kinds},
        query_{query},
        low_{std::max<std::int64_t>(range.after.value(), 0)},
        high_{range.up_to.value()},
        limit_{range.limit},
        is_forward_{range.direction == Direction::forward} {}

 private:
  bool is_done() const noexcept override { return low_ >= high_ || limit_ <= 0; }

  std::int64_t fill(Connection& connection) override {
    if (!is_bounded_) bound_ = std::min(high_, last_sequence(connection));
    const std::int64_t wanted = rows_wanted(limit_);
    Array places = find(connection, wanted);
    Parameters parameters;
    parameters.add(places).add(wanted);
    static const std::string forward = page_sql("e.sequence = ANY ($1)", "sequence", "$2");
    static const std::string backward = page_sql("e.sequence = ANY ($1)", "sequence DESC", "$2");
    const Result found = connection.query(is_forward_ ? forward : backward, std::move(parameters),
                                          "reading events by a query");
    tagged_rows(connection, found).fill(page_, found, wanted);
    return is_bounded_ ? 0 : std::max<std::int64_t>(bound_, 0);
  }

  /// The sequences of the next page, of no more than `wanted` events.
  Array find(Connection& connection, std::int64_t wanted) const {
    static const std::string forward = find_sql("s");
    static const std::string backward = find_sql("s DESC");
    Array types = Array::of_text();
    Array tags = Array::of_text();
    Array hashes = Array::of_int8();
    add_query_items(query_, types, tags, hashes);
    Array is_backward = Array::of_bool();
    is_backward.add_bool(!is_forward_);
    Parameters parameters;
    parameters.add(types).add(tags).add(hashes).add(low_).add(bound_).add(wanted).add(is_backward);
    const Result found = connection.query(is_forward_ ? forward : backward, std::move(parameters),
                                          "finding events by a query");
    Array places = Array::of_int8();
    for (int row = 0; row < found.rows(); ++row) places.add(found.integer(row, 0));
    return places;
  }

  static std::string find_sql(std::string_view order) {
    return std::string{
        "SELECT DISTINCT m.s FROM unnest($1::text[], $2::text[], $3::bigint[]) "
        "AS i(types, tags, hash), LATERAL stela.matching(i.types, i.tags, i.hash, $4, $5, "
        "($7::boolean[])[1], $6) AS m(s) ORDER BY "}
        .append(order)
        .append(" LIMIT $6");
  }

  void pass() override {
    is_bounded_ = true;
    high_ = bound_;
    limit_ -= static_cast<std::int64_t>(page_.events().size());
    if (page_.empty()) {
      high_ = low_;
    } else if (is_forward_) {
      low_ = page_.events().back().sequence.value();
    } else {
      high_ = page_.events().back().sequence.value() - 1;
    }
    bound_ = high_;
  }

  const stela::Query query_;
  std::int64_t low_;
  std::int64_t high_;
  std::int64_t bound_ = 0;
  std::int64_t limit_;
  const bool is_forward_;
  bool is_bounded_ = false;
};

class AtCursor final : public Cursor {
 public:
  AtCursor(Reading& reading, KindTable& kinds, std::span<const GlobalSequence> sequences)
      : Cursor{reading, kinds} {
    for (const GlobalSequence sequence : sequences) sequences_.push_back(sequence.value());
    std::sort(sequences_.begin(), sequences_.end());
    sequences_.erase(std::unique(sequences_.begin(), sequences_.end()), sequences_.end());
  }

 private:
  bool is_done() const noexcept override { return next_ == sequences_.size(); }

  std::int64_t fill(Connection& connection) override {
    static const std::string sql = page_sql("e.sequence = ANY ($1)", "sequence", "$2");
    passed_ = next_;
    while (page_.empty() && passed_ < sequences_.size()) {
      const std::size_t end = std::min(sequences_.size(), passed_ + std::size_t{page_rows});
      Array wanted = Array::of_int8();
      for (std::size_t i = passed_; i < end; ++i) wanted.add(sequences_[i]);
      Parameters parameters;
      parameters.add(wanted).add(page_rows + 1);
      const Result found =
          connection.query(sql, std::move(parameters), "reading events by their sequences");
      const bool is_complete = tagged_rows(connection, found).fill(page_, found, page_rows + 1);
      passed_ = is_complete ? end : behind(page_.events().back().sequence.value());
    }
    return 0;
  }

  std::size_t behind(std::int64_t sequence) const noexcept {
    const auto found = std::upper_bound(sequences_.begin(), sequences_.end(), sequence);
    return static_cast<std::size_t>(found - sequences_.begin());
  }

  void pass() override { next_ = passed_; }

  std::vector<std::int64_t> sequences_;
  std::size_t next_ = 0;
  std::size_t passed_ = 0;
};

}  // namespace

void read_durably(Reading& reading, FunctionRef<std::int64_t(Connection&)> work) {
  constexpr int attempts = 3;
  for (int i = 0; i < attempts; ++i) {
    std::int64_t reached = 0;
    const Uuid run = reading.read([&](Connection& connection) { reached = work(connection); });
    if (reached == 0 || reading.vouch(run, reached)) return;
  }
  throw StoreBusy{"the server was restarted while events were read; read them again"};
}

std::int64_t last_sequence(Connection& connection) {
  return connection
      .query("SELECT coalesce(max(sequence), 0) FROM stela.events", {}, "reading the last sequence")
      .integer(0, 0);
}

std::unique_ptr<EventCursor> read_stream(Reading& reading, KindTable& kinds, const StreamId& stream,
                                         const StreamQuery& query) {
  return std::make_unique<StreamCursor>(reading, kinds, stream, query);
}

std::unique_ptr<EventCursor> read_all(Reading& reading, KindTable& kinds, const AllQuery& query) {
  return std::make_unique<AllCursor>(reading, kinds, query);
}

std::unique_ptr<EventCursor> read_query(Reading& reading, KindTable& kinds,
                                        const stela::Query& query, const QueryRange& range) {
  return std::make_unique<QueryCursor>(reading, kinds, query, range);
}

std::unique_ptr<EventCursor> read_at(Reading& reading, KindTable& kinds,
                                     std::span<const GlobalSequence> sequences) {
  return std::make_unique<AtCursor>(reading, kinds, sequences);
}

}  // namespace stela::postgres
