// Looks up by correlation, cause and id, and builds the index of links.
#include "links.hpp"

#include "database/checksum.hpp"
#include "operations_sql/catalogue.hpp"

#include <stela/eventstore/operations.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

namespace stela {
namespace links {
namespace {

/// An id up to this much older than its event's recording is still found by its time.
constexpr auto nearby = std::chrono::minutes{1};

}  // namespace

std::int64_t link_of(const Uuid& id) noexcept {
  std::uint64_t link = 0;
  for (std::size_t i = 0; i < 8; ++i) link = link << 8 | id.bytes()[i];
  return static_cast<std::int64_t>(link);
}

std::int64_t link_of(std::string_view id) noexcept {
  if (const auto uuid = Uuid::parse(id)) return link_of(*uuid);
  return static_cast<std::int64_t>(database::text_checksum(id));
}

Uuid uuid_of(std::string_view blob) noexcept {
  Uuid::Bytes bytes{};
  if (blob.size() == bytes.size()) std::memcpy(bytes.data(), blob.data(), bytes.size());
  return Uuid{bytes};
}

Timestamp time_of(const Uuid& id) noexcept {
  constexpr int version_of_time = 7;
  if (id.bytes()[6] >> 4 != version_of_time) return Timestamp::min();
  return Timestamp{std::chrono::milliseconds{link_of(id) >> 16}};
}

void Pairs::add(std::int64_t sequence, Timestamp recorded_at, std::string_view event_id,
                std::string_view correlation_id, std::string_view causation_id) {
  if (!correlation_id.empty()) pairs_.emplace_back(link_of(correlation_id), sequence);
  const Uuid cause = uuid_of(causation_id);
  if (!cause.is_nil()) pairs_.emplace_back(link_of(cause), sequence);
  const Uuid id = uuid_of(event_id);
  const Timestamp made = time_of(id);
  if (made < recorded_at - nearby || made > recorded_at + nearby) {
    pairs_.emplace_back(link_of(id), sequence);
  }
}

const std::vector<Pair>& Pairs::sorted() {
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  return pairs_;
}

std::string Pairs::to_json() {
  std::string text = "[";
  for (const auto& [link, sequence] : sorted()) {
    text.append(text.size() > 1 ? ",[" : "[").append(std::to_string(link)).append(",");
    text.append(std::to_string(sequence)).append("]");
  }
  return text += ']';
}

}  // namespace links

namespace {

using database::Connection;
using links::link_of;
using links::uuid_of;
namespace sql = operations::sql;

/// The number of events that one statement reads: a few milliseconds' worth.
constexpr std::int64_t index_step_events = 50'000;
/// The number of events indexed in one transaction, which blocks appends on SQLite.
constexpr std::int64_t index_step = 4'000;
constexpr std::int64_t delete_step = 20'000;
/// The most events around an id's time that are searched for the start of its correlation.
constexpr std::int64_t most_around = 100'000;
/// The number of links that are read at a time.
constexpr std::int64_t page_size = 1'000;

std::string_view bytes_of(const Uuid& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

/// A range including both ends.
struct Span {
  std::int64_t from;
  std::int64_t to;

  bool is_empty() const noexcept { return from > to; }
  std::int64_t size() const noexcept { return is_empty() ? 0 : to - from + 1; }
};

/// The common part of all look-ups: the log at one moment, and the extent of its index.
class Look {
 public:
  explicit Look(Store& store) : database_{store.database()}, head_{store.last_sequence().value()} {
    database_.read([&](Connection& connection) {
      auto row = connection.rows(sql::links_through{});
      if (row.step()) through_ = std::min(row.sequence(), head_);
    });
  }

  Span indexed(const Span& of) const noexcept { return {of.from, std::min(of.to, through_)}; }
  Span unindexed(const Span& of) const noexcept {
    return {std::max(of.from, through_ + 1), std::min(of.to, head_)};
  }
  Span all() const noexcept { return {1, head_}; }

  /// Calls `take` with the rows of the index until it returns false.
  template <class Statement>
  void follow(std::int64_t link, Span span, FunctionRef<bool(const sql::carrier_row&)> take) const {
    constexpr bool is_forward = std::is_same_v<Statement, sql::linked>;
    bool more = true;
    while (more && !span.is_empty()) {
      std::int64_t rows_read = 0;
      database_.read([&](Connection& connection) {
        auto rows = connection.rows(
            Statement{.link = link, .from = span.from, .to = span.to, .limit = page_size});
        while (more && rows.step()) {
          ++rows_read;
          (is_forward ? span.from : span.to) = rows.sequence() + (is_forward ? 1 : -1);
          more = take(rows);
        }
      });
      more = more && rows_read == page_size;
    }
  }

  /// Calls `take` with the rows of the statements that `make` builds for ranges.
  template <class Make, class Take>
  void scan(const Span& span, Make make, Take take) const {
    database_.read([&](Connection& connection) {
      auto rows = connection.rows(make(span));
      while (rows.step()) take(rows);
    });
  }

  std::optional<GlobalSequence> find(const EventId& id, std::int64_t most) const;

 private:
  std::optional<GlobalSequence> find_in(const EventId& id, const Span& span) const;
  std::int64_t place_of(Timestamp time) const;

  database::Database& database_;
  std::int64_t head_;
  std::int64_t through_ = 0;
};

/// Approximately the first event recorded then: a clock that was set back breaks the order.
std::int64_t Look::place_of(Timestamp time) const {
  Span left{1, head_};
  while (!left.is_empty()) {
    const std::int64_t middle = left.from + left.size() / 2;
    bool is_before = false;
    database_.read([&](Connection& connection) {
      auto row = connection.rows(sql::time_of{.sequence = middle});
      is_before = row.step() && row.recorded_at() < time;
    });
    if (is_before) {
      left.from = middle + 1;
    } else {
      left.to = middle - 1;
    }
  }
  return left.from;
}

std::optional<GlobalSequence> Look::find_in(const EventId& id, const Span& span) const {
  std::optional<GlobalSequence> found;
  if (span.is_empty()) return found;
  scan(
      span,
      [&](const Span& s) {
        return sql::find_event{.from = s.from, .to = s.to, .id = bytes_of(id)};
      },
      [&](const auto& row) { found = GlobalSequence{row.sequence()}; });
  return found;
}

std::optional<GlobalSequence> Look::find(const EventId& id, std::int64_t most) const {
  std::optional<GlobalSequence> found;
  follow<sql::linked>(link_of(id), indexed(all()), [&](const sql::carrier_row& row) {
    if (uuid_of(row.event_id()) == id) found = GlobalSequence{row.sequence()};
    return !found;
  });
  const bool has_time = links::time_of(id) != Timestamp::min();
  const std::int64_t place = has_time ? place_of(links::time_of(id)) : head_ + 1;
  // Outwards from there, in growing steps. For an id without a time, only unindexed events are left
  // to search.
  const std::int64_t first = has_time ? 1 : unindexed(all()).from;
  Span seen{place, place - 1};
  for (std::int64_t step = 1'024; !found && seen.size() < most;
       step = std::min(2 * step, index_step_events)) {
    const Span before{std::max(first, seen.from - step), seen.from - 1};
    const Span after{seen.to + 1, std::min(head_, seen.to + step)};
    if (before.is_empty() && after.is_empty()) break;
    found = find_in(id, after);
    if (!found) found = find_in(id, before);
    seen = {std::min(before.from, seen.from), std::max(after.to, seen.to)};
  }
  return found;
}

/// One query for events of a correlation or of a cause.
class Search {
 public:
  Search(const Look& look, const LinkQuery& query)
      : look_{look},
        query_{query},
        of_correlation_{!query.correlation.empty()},
        span_{query.from.value(), query.to.value()} {}

  LinkedEvents run() {
    find_root();
    if (is_forward()) read_index();
    read_rest();
    if (!is_forward()) read_index();
    add_root();
    return std::move(result_);
  }

 private:
  bool is_forward() const noexcept { return query_.direction == Direction::forward; }
  std::int64_t left() const noexcept {
    return query_.limit - static_cast<std::int64_t>(result_.sequences.size());
  }

  void read_index() {
    const auto take = [&](const sql::carrier_row& row) {
      const bool belongs = of_correlation_ ? row.correlation_id() == query_.correlation
                                           : uuid_of(row.causation_id()) == query_.cause;
      if (belongs && left() > 0) result_.sequences.emplace_back(row.sequence());
      return left() > 0;
    };
    const std::int64_t link = of_correlation_ ? link_of(query_.correlation) : link_of(query_.cause);
    const Span span = look_.indexed(span_);
    is_forward() ? look_.follow<sql::linked>(link, span, take)
                 : look_.follow<sql::linked_backward>(link, span, take);
  }

  /// Reads events without links, from the end where the answer begins.
  void read_rest() {
    Span rest = look_.unindexed(span_);
    std::int64_t read = 0;
    // The newest of them: they are wanted most, and aren't indexed yet.
    const std::int64_t passed =
        is_forward() ? std::max<std::int64_t>(rest.size() - most_unindexed, 0) : 0;
    rest.from += passed;
    while (left() > 0 && !rest.is_empty() && read < most_unindexed) {
      const std::int64_t size = std::min(index_step_events, rest.size());
      const Span step =
          is_forward() ? Span{rest.from, rest.from + size - 1} : Span{rest.to - size + 1, rest.to};
      read_step(step);
      read += size;
      is_forward() ? rest.from = step.to + 1 : rest.to = step.from - 1;
    }
    if (left() > 0) result_.skipped = rest.size() + passed;
  }

  void read_step(const Span& step) {
    std::vector<GlobalSequence> found;
    const auto take = [&](const auto& row) { found.emplace_back(row.sequence()); };
    if (of_correlation_) {
      look_.scan(
          step,
          [&](const Span& s) {
            return sql::correlated{.from = s.from, .to = s.to, .correlation = query_.correlation};
          },
          take);
    } else {
      look_.scan(
          step,
          [&](const Span& s) {
            return sql::effects_of{.from = s.from, .to = s.to, .cause = bytes_of(query_.cause)};
          },
          take);
    }
    if (!is_forward()) std::reverse(found.begin(), found.end());
    if (std::ssize(found) > left()) found.resize(static_cast<std::size_t>(left()));
    result_.sequences.insert(result_.sequences.end(), found.begin(), found.end());
  }

  /// The event that began the correlation doesn't carry its id.
  void find_root() {
    const auto id = Uuid::parse(query_.correlation);
    const auto found = id ? look_.find(*id, most_around) : std::nullopt;
    if (!found) return;
    const Span own{found->value(), found->value()};
    const auto ask = [](const Span& s) { return sql::carriers{.from = s.from, .to = s.to}; };
    look_.scan(own, ask, [&](const auto& row) {
      if (row.correlation_id().empty() && id->to_string() == query_.correlation) root_ = found;
    });
  }

  void add_root() {
    if (!root_ || *root_ < query_.from || *root_ > query_.to) return;
    auto& all = result_.sequences;
    const auto comes_before = [&](GlobalSequence a, GlobalSequence b) {
      return is_forward() ? a < b : b < a;
    };
    all.insert(std::lower_bound(all.begin(), all.end(), *root_, comes_before), *root_);
    if (left() < 0) all.pop_back();
  }

  const Look& look_;
  const LinkQuery& query_;
  bool of_correlation_;
  Span span_;
  std::optional<GlobalSequence> root_;
  LinkedEvents result_;
};

/// All effects of an event: first breadth-first by the index, then by one walk through events
/// without links, because effects come after their causes.
class Descent {
 public:
  Descent(const Look& look, std::int64_t limit) : look_{look}, limit_{limit} {}

  Effects run(const EventId& cause, std::int64_t sequence) {
    known_.emplace(bytes_of(cause));
    follow(cause, sequence);
    for (std::size_t i = 0; i < result_.effects.size() && !result_.has_more; ++i) {
      const Effect effect = result_.effects[i];
      follow(effect.id, effect.sequence.value());
    }
    walk(look_.unindexed({sequence + 1, GlobalSequence::max().value()}));
    std::sort(result_.effects.begin(), result_.effects.end(),
              [](const Effect& a, const Effect& b) { return a.sequence < b.sequence; });
    return std::move(result_);
  }

 private:
  bool add(const sql::carrier_row& row) {
    if (known_.contains(std::string{row.event_id()})) return true;
    result_.has_more = std::ssize(result_.effects) >= limit_;
    if (result_.has_more) return false;
    known_.emplace(row.event_id());
    result_.effects.push_back(
        {GlobalSequence{row.sequence()}, uuid_of(row.event_id()), uuid_of(row.causation_id())});
    return true;
  }

  void follow(const EventId& cause, std::int64_t sequence) {
    const Span span = look_.indexed({sequence + 1, GlobalSequence::max().value()});
    look_.follow<sql::linked>(link_of(cause), span, [&](const sql::carrier_row& row) {
      return uuid_of(row.causation_id()) != cause || add(row);
    });
  }

  void walk(Span rest) {
    std::int64_t read = 0;
    while (!rest.is_empty() && read < most_unindexed && !result_.has_more) {
      const Span step{rest.from, std::min(rest.to, rest.from + index_step_events - 1)};
      look_.scan(
          step, [](const Span& s) { return sql::caused{.from = s.from, .to = s.to}; },
          [&](const auto& row) {
            if (known_.contains(std::string{row.causation_id()}) && !result_.has_more) add(row);
          });
      read += step.size();
      rest.from = step.to + 1;
    }
    if (!result_.has_more) result_.skipped = rest.size();
  }

  const Look& look_;
  std::int64_t limit_;
  std::unordered_set<std::string> known_;
  Effects result_;
};

void remove_links(database::Database& database, const IndexLinksOptions& options) {
  const auto reset = [](Connection& connection) {
    connection.run(sql::set_links_through{.sequence = 0});
  };
  database.write_along(reset, database::Sync::none);
  std::int64_t removed = delete_step;
  while (removed == delete_step && !options.stop.stop_requested()) {
    const auto remove = [&](Connection& connection) {
      removed = connection.run(sql::delete_links{.most = delete_step});
    };
    database.write_along(remove, database::Sync::none);
  }
}

/// Indexes the next events, and reads them in the same transaction: so the index can't outlive
/// events that a crash of the server loses. False at the end of the log.
bool index_next(Connection& connection, IndexedLinks& result) {
  std::int64_t through = 0;
  std::int64_t head = 0;
  {
    auto row = connection.rows(sql::links_through{});
    if (row.step()) through = row.sequence();
  }
  {
    auto row = connection.rows(sql::last_sequence{});
    if (row.step()) head = row.last();
  }
  const std::int64_t to = std::min(head, through + index_step);
  result.through = GlobalSequence{std::max(through, to)};
  if (to <= through) return false;
  links::Pairs pairs;
  {
    auto rows = connection.rows(sql::carriers{.from = through + 1, .to = to});
    while (rows.step()) pairs.add(rows);
  }
  const std::string json = pairs.to_json();
  connection.run(sql::insert_links{.links = json});
  connection.run(sql::set_links_through{.sequence = to});
  result.events += to - through;
  return to < head;
}

}  // namespace

std::optional<GlobalSequence> StoreOperations::find_event(const EventId& id, std::int64_t most) {
  return Look{store_}.find(id, most);
}

std::vector<GlobalSequence> StoreOperations::effects_of(const EventId& cause, GlobalSequence after,
                                                        std::int64_t limit) {
  return linked_events({.cause = cause, .from = after.next(), .limit = limit}).sequences;
}

LinkedEvents StoreOperations::linked_events(const LinkQuery& query) {
  const Look look{store_};
  return Search{look, query}.run();
}

Effects StoreOperations::all_effects_of(const EventId& cause, GlobalSequence sequence,
                                        std::int64_t limit) {
  const Look look{store_};
  return Descent{look, limit}.run(cause, sequence.value());
}

std::int64_t StoreOperations::unindexed_events() {
  std::int64_t through = 0;
  store_.database().read([&](Connection& connection) {
    through = 0;
    {
      auto found = connection.rows(sql::has_links{});
      if (!found.step() || !found.is_there()) return;
    }
    auto row = connection.rows(sql::links_through{});
    if (row.step()) through = row.sequence();
  });
  return std::max<std::int64_t>(store_.last_sequence().value() - through, 0);
}

IndexedLinks StoreOperations::index_links(const IndexLinksOptions& options) {
  database::Database& database = store_.database();
  if (options.again) remove_links(database, options);
  IndexedLinks result;
  bool more = true;
  while (more) {
    if (options.stop.stop_requested()) {
      result.finished = false;
      break;
    }
    IndexedLinks step;
    const auto index = [&](Connection& connection) {
      step = {};
      more = index_next(connection, step);
    };
    database.write_along(index, database::Sync::none);
    result.events += step.events;
    result.through = step.through;
    if (options.progress) {
      options.progress({"indexing", step.through.value(), store_.last_sequence().value()});
    }
  }
  return result;
}

}  // namespace stela
