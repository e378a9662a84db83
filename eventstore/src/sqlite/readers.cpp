#include "sqlite/readers.hpp"

#include "database/event_page.hpp"
#include "sqlite/candidates.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/one_state.hpp"
#include "sqlite/tag_places.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>

namespace stela::sqlite {
namespace {

constexpr std::int64_t first_page_rows = 128;
constexpr std::int64_t page_rows = 1024;
/// So many sequences are looked at in one read transaction, unless a page is full before.
constexpr std::int64_t max_looked = 65'536;

/// What all cursors have in common: pages, and what their events point to.
class Cursor : public EventCursor {
 public:
  Cursor(Reading& reading, KindTable& kinds) noexcept : reading_{reading}, kinds_{kinds} {}

  std::span<const StoredEvent> next_page() final {
    page_.clear();
    names_.trim();
    if (pages_++ > 0) page_.grow();
    page_.reserve(static_cast<std::size_t>(rows_wanted(page_rows)));
    while (!done_ && page_.empty()) {
      reading_.read([&](Connection& connection) { fill(connection); });
    }
    return page_.events();
  }

 protected:
  /// Adds events to the page, moves on behind them, and sets done_ at the end.
  virtual void fill(Connection& connection) = 0;

  EventRows rows(Connection& connection) noexcept { return {connection, kinds_, names_}; }
  /// The same, with tags.
  EventRows tagged_rows(Connection& connection) noexcept {
    EventRows reader = rows(connection);
    reader.tags = &tags_;
    return reader;
  }
  std::int64_t rows_wanted(std::int64_t limit) const noexcept {
    return std::min(limit, pages_ <= 1 ? first_page_rows : page_rows);
  }
  std::int64_t rows_read() const noexcept {
    return static_cast<std::int64_t>(page_.events().size());
  }

  EventPage page_;
  bool done_ = false;

 private:
  Reading& reading_;
  KindTable& kinds_;
  StreamNames names_;
  std::string tags_;
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

  void fill(Connection& connection) override {
    const bool forward = is_forward();
    const std::int64_t wanted = rows_wanted(query_.limit);
    auto found = forward ? find<sql::read_stream>(connection, last_of_page(wanted), wanted)
                         : find<sql::read_stream_backward>(connection, query_.to.value(), wanted);
    EventRows reader = query_.with_tags ? tagged_rows(connection) : rows(connection);
    reader.stream = &stream_;
    reader.succession = &succession_;
    const bool ended = reader.fill(page_, found) && rows_read() < wanted;
    query_.limit -= rows_read();
    done_ = ended || query_.limit <= 0;
    // Forward, nobody knows where the stream ends; backward, it ends where it began.
    if (ended && !forward && succession_.next >= query_.from.value()) {
      if (page_.empty()) succession_.fail_at_end(&stream_);
      done_ = false;
    }
    if (page_.empty()) return;
    (forward ? query_.from : query_.to) = StreamVersion{succession_.next};
    done_ = done_ || succession_.next == 0;
  }

  template <class Statement>
  sql::event_row find(Connection& connection, std::int64_t to, std::int64_t limit) const {
    return connection.rows(Statement{.name = stream_.name(),
                                     .from = query_.from.value(),
                                     .to = to,
                                     .up_to = query_.up_to.value(),
                                     .limit = limit});
  }

  /// Versions have no gaps, so that a page of events lies in as many versions. Up to a sequence the
  /// query needn't look at all later events of the stream.
  std::int64_t last_of_page(std::int64_t rows) const noexcept {
    const std::int64_t from = query_.from.value();
    const std::int64_t to = query_.to.value();
    const bool is_bounded = query_.up_to != GlobalSequence::max();
    return is_bounded && to - from >= rows ? from + rows - 1 : to;
  }

  const StreamId stream_;
  StreamQuery query_;
  Succession succession_{.of = Succession::Of::versions};
};

std::string json_array(const std::vector<std::string>& texts) {
  std::string array = "[";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    json::append_string(array, text);
  }
  return array + ']';
}

class AllCursor final : public Cursor {
 public:
  AllCursor(Reading& reading, KindTable& kinds, const AllQuery& query)
      : Cursor{reading, kinds},
        from_{std::max<std::int64_t>(query.from.value(), 1)},
        to_{query.to.value()},
        limit_{query.limit},
        forward_{query.direction == Direction::forward},
        with_tags_{query.with_tags},
        since_{query.since.value_or(Timestamp::min())},
        until_{query.until.value_or(Timestamp::max())} {
    if (!query.streams.empty()) streams_ = json_array(query.streams);
    if (!query.categories.empty()) categories_ = json_array(query.categories);
    if (!query.event_types.empty()) types_ = json_array(query.event_types);
    if (!streams_.empty() || !categories_.empty() || !types_.empty() || query.since ||
        query.until) {
      candidates_ = find_candidates(query, categories_, types_);
    }
    done_ = from_ > to_ || limit_ <= 0;
  }

 private:
  void fill(Connection& connection) override {
    if (!bounded_) bound(connection);
    // Ranges may be short; together they aren't longer than one statement's may be.
    std::int64_t looked = 0;
    while (!done_ && looked < max_looked && rows_read() < rows_wanted(no_limit)) {
      if (!range_) range_ = next_range(connection);
      if (!range_) {
        done_ = true;
        return;
      }
      looked += range_->end - range_->begin + 1;
      if (!read_range(connection)) return;
    }
  }

  std::optional<SequenceRange> next_range(Connection& connection) {
    const SequenceRange left{from_, to_};
    return candidates_ ? candidates_->next(connection, left) : left;
  }

  /// False if the page ended before the range did.
  bool read_range(Connection& connection) {
    const std::int64_t before = rows_read();
    const std::int64_t wanted = std::min(limit_, rows_wanted(no_limit) - before);
    const bool ended = candidates_ ? read_filtered(connection, *range_, wanted)
                                   : read_plain(connection, *range_, wanted);
    const std::int64_t read = rows_read() - before;
    limit_ -= read;
    const bool complete = ended && read < wanted;
    std::int64_t reached = forward_ ? range_->end : range_->begin;
    if (!complete) {
      // Nothing of this range, if the page was full before it.
      if (read == 0) return false;
      reached = page_.events().back().sequence.value();
    }
    done_ = reached == (forward_ ? to_ : from_) || limit_ <= 0;
    if (done_) return false;
    (forward_ ? from_ : to_) = reached + (forward_ ? 1 : -1);
    (forward_ ? range_->begin : range_->end) = reached + (forward_ ? 1 : -1);
    if (range_->begin > range_->end) range_.reset();
    return complete;
  }

  void bound(Connection& connection) {
    to_ = std::min(to_, last_sequence(connection));
    done_ = from_ > to_;
    bounded_ = true;
    with_tags_ = with_tags_ && connection.rows(sql::has_tags{}).step();
  }

  EventRows reader_of(Connection& connection) noexcept {
    return with_tags_ ? tagged_rows(connection) : rows(connection);
  }

  bool read_plain(Connection& connection, const SequenceRange& range, std::int64_t wanted) {
    const std::int64_t begin = range.begin;
    const std::int64_t end = range.end;
    auto found =
        forward_
            ? connection.rows(sql::read_all{.from = begin, .to = end, .limit = wanted})
            : connection.rows(sql::read_all_backward{.from = begin, .to = end, .limit = wanted});
    Succession succession{
        .of = Succession::Of::sequences, .next = forward_ ? begin : end, .step = forward_ ? 1 : -1};
    EventRows reader = reader_of(connection);
    reader.succession = &succession;
    if (!reader.fill(page_, found)) return false;
    const bool complete = rows_read() == std::min(wanted, end - begin + 1);
    if (!complete && page_.empty()) succession.fail_at_end(nullptr);
    // The next page begins with what is missing, and reports it.
    return complete;
  }

  bool read_filtered(Connection& connection, const SequenceRange& range, std::int64_t wanted) {
    auto found = forward_ ? filter<sql::read_all_filtered>(connection, range, wanted)
                          : filter<sql::read_all_filtered_backward>(connection, range, wanted);
    return reader_of(connection).fill(page_, found);
  }

  template <class Statement>
  sql::event_row filter(Connection& connection, const SequenceRange& range,
                        std::int64_t wanted) const {
    return connection.rows(
        Statement{.from = range.begin,
                  .to = range.end,
                  .limit = wanted,
                  .categories = or_null(categories_),
                  .types = or_null(types_),
                  .since = since_,
                  .until = until_,
                  .streams = or_null(range.is_of_streams ? std::string_view{} : streams_)});
  }

  std::int64_t from_;
  std::int64_t to_;
  std::int64_t limit_;
  bool forward_;
  bool with_tags_;
  bool bounded_ = false;
  /// Null if all events are wanted.
  std::unique_ptr<Candidates> candidates_;
  /// What is being read.
  std::optional<SequenceRange> range_;
  std::string streams_;
  std::string categories_;
  std::string types_;
  Timestamp since_;
  Timestamp until_;
};

/// Reads the events that match a query, found one by one in the indexes.
class QueryCursor final : public Cursor {
 public:
  QueryCursor(Reading& reading, KindTable& kinds, const stela::Query& query,
              const QueryRange& range)
      : Cursor{reading, kinds},
        query_{query},
        places_{places_of(query_, kinds, range.direction)},
        low_{std::max<std::int64_t>(range.after.value(), 0)},
        high_{range.up_to.value()},
        limit_{range.limit},
        forward_{range.direction == Direction::forward} {
    // After the last sequence of all there is none.
    done_ = low_ >= high_ || limit_ <= 0;
    if (!done_) ++low_;
  }

 private:
  void fill(Connection& connection) override {
    // Some statements for each event: alone, each would lock the file and look for commits.
    const OneState state{connection};
    if (!bounded_) bound(connection);
    EventRows reader = tagged_rows(connection);
    // Places may be of other events, if their tags have the same hash.
    for (std::int64_t looked = 0; !done_ && looked < page_rows; ++looked) {
      if (rows_read() >= rows_wanted(page_rows)) return;
      const auto place = places_->next(connection, forward_ ? low_ : high_);
      if (!place || *place < low_ || *place > high_) {
        done_ = true;
      } else if (!try_take(connection, reader, *place)) {
        return;
      }
    }
  }

  /// An event that can't be read ends the page before it; the next page begins with it.
  bool try_take(Connection& connection, EventRows& reader, std::int64_t place) {
    try {
      return take(connection, reader, place);
    } catch (const Error&) {
      if (page_.empty()) throw;
      return false;
    }
  }

  void bound(Connection& connection) {
    high_ = std::min(high_, last_sequence(connection));
    done_ = low_ > high_;
    bounded_ = true;
  }

  /// False if the page was full before it.
  bool take(Connection& connection, EventRows& reader, std::int64_t place) {
    auto row = connection.rows(sql::tagged_event{.sequence = place});
    if (!row.step()) {
      throw CorruptEvent{"event " + std::to_string(place) +
                         " has tags, but is missing; restore it from a backup"};
    }
    const StoredEvent event = reader.read(row);
    const bool is_match = std::any_of(query_.items.begin(), query_.items.end(),
                                      [&](const QueryItem& item) { return matches(item, event); });
    if (is_match && !page_.add(event)) return false;
    if (is_match) --limit_;
    (forward_ ? low_ : high_) = place + (forward_ ? 1 : -1);
    done_ = low_ > high_ || limit_ <= 0;
    return true;
  }

  const stela::Query query_;
  const std::unique_ptr<Places> places_;
  std::int64_t low_;
  std::int64_t high_;
  std::int64_t limit_;
  const bool forward_;
  bool bounded_ = false;
};

/// Reads given sequences as the ranges that they form.
class AtCursor final : public Cursor {
 public:
  AtCursor(Reading& reading, KindTable& kinds, std::span<const GlobalSequence> sequences)
      : Cursor{reading, kinds}, sequences_{sequences.begin(), sequences.end()} {
    std::sort(sequences_.begin(), sequences_.end());
    sequences_.erase(std::unique(sequences_.begin(), sequences_.end()), sequences_.end());
    done_ = sequences_.empty();
  }

 private:
  void fill(Connection& connection) override {
    while (next_ < sequences_.size() && rows_read() < page_rows) {
      std::size_t end = next_ + 1;
      while (end < sequences_.size() && sequences_[end] == sequences_[end - 1].next()) ++end;
      auto found = connection.rows(sql::read_all{.from = sequences_[next_].value(),
                                                 .to = sequences_[end - 1].value(),
                                                 .limit = page_rows});
      const std::int64_t before = rows_read();
      if (!tagged_rows(connection).fill(page_, found)) {
        if (rows_read() == before) return;
        // The page is full: the next one goes on behind its last event.
        const GlobalSequence last = page_.events().back().sequence;
        const auto reached = static_cast<std::size_t>(
            std::upper_bound(sequences_.begin(), sequences_.end(), last) - sequences_.begin());
        // A page of the file in the place of another shows its events again, and again.
        if (reached <= next_) {
          throw CorruptRow{sequences_[next_].value(), "the events near it are out of order"};
        }
        next_ = reached;
        return;
      }
      const auto limit = static_cast<std::size_t>(page_rows);
      next_ = end - next_ > limit ? next_ + limit : end;
    }
    done_ = next_ == sequences_.size();
  }

  std::vector<GlobalSequence> sequences_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Connection> Readers::take() {
  // First of all: a thread that the child has no copy of may have held the mutex.
  owner_.check();
  {
    const std::lock_guard lock{mutex_};
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>(path_, options_);
}

void Readers::read(FunctionRef<void(Connection&)> work) {
  auto connection = take();
  place_.check_now_and_then();
  // A connection on which reading failed isn't kept.
  work(*connection);
  connection->check_immutable();
  const std::lock_guard lock{mutex_};
  if (idle_.size() < max_idle) idle_.push_back(std::move(connection));
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

}  // namespace stela::sqlite
