// The checks of the events themselves: in the order of the store, and in that of each stream.
#include "event_ids.hpp"
#include "event_numbers.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite_sql/inspection.hpp"
#include "sqlite_sql/kinds.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace stela::sqlite {
namespace {

constexpr std::int64_t event_page_rows = 512;
/// A page with large payloads ends earlier, so that its read transaction stays short.
constexpr std::size_t page_bytes = std::size_t{4} * 1024 * 1024;

constexpr std::string_view event_index_advice =
    "the events are the truth: rebuild their index with REINDEX, verify again, and keep a backup";

/// The index is all that is left of such an event: it must not be rebuilt.
constexpr std::string_view lost_advice =
    "an event that was appended seems to be gone: keep a copy, and restore a backup";

/// The index lets itself not be rebuilt: it is unique.
constexpr std::string_view repeated_advice =
    "an older state of the index came back, and versions were given out again: keep a copy, and "
    "restore a backup";

constexpr std::string_view blocks_advice =
    "the events are the truth, but reads by type skip it: complete the table by "
    "INSERT OR IGNORE INTO kind_blocks SELECT DISTINCT kind, sequence / 1024 FROM events";

class EventsCheck {
 public:
  explicit EventsCheck(FileInspection& inspection) : inspection_{inspection} {}

  void run() {
    if (!begin()) return;
    walk_sequence();
    walk_versions();
    report_index();
  }

 private:
  bool begin();
  void walk_sequence();
  void read_page(Connection& connection);
  void look_at(EventRows& rows, const sql::event_row& row);
  void check_block(Connection& connection, const StoredEvent& event);
  void report_missing(std::int64_t first, std::int64_t last);
  bool can_read(std::int64_t sequence);
  std::int64_t find_readable();
  void walk_versions();
  bool read_index_page(Connection& connection);
  void look_at_entry(const sql::inspect_versions::Row& row, Connection& connection);
  void report_index();
  bool repeats_versions();

  FileInspection& inspection_;
  /// Its own, so that they come from the disk.
  KindTable kinds_;
  StreamNames names_;
  EventIds ids_;
  std::vector<std::string> categories_;
  /// By kind: the block that was looked at last.
  std::vector<std::int64_t> blocks_;

  /// The last event when the check began.
  std::int64_t bound_ = 0;
  std::int64_t next_ = 1;
  std::int64_t found_ = 0;
  bool in_order_ = true;

  /// Where the walk through the index stands.
  std::int64_t stream_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t version_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t published_ = 0;
  std::int64_t entries_ = 0;
  bool is_index_read_ = true;
  /// Where and in what the index differs from the events.
  std::vector<std::pair<std::string, std::string>> index_problems_;
};

bool EventsCheck::begin() {
  return inspection_.read([&](Connection& connection) {
    if (connection.integer("SELECT 1 FROM events NOT INDEXED WHERE sequence < 1 LIMIT 1")) {
      inspection_.report("table events", "there is an event before the first one");
    }
    bound_ = last_sequence(connection);
    if (bound_ == std::numeric_limits<std::int64_t>::max()) {
      inspection_.report(event_number(bound_), "no event can have this sequence");
      --bound_;
    }
    auto kinds = connection.rows(sql::event_kinds{.after = 0});
    while (kinds.step() && kinds.kind() == static_cast<std::int64_t>(categories_.size()) + 1) {
      categories_.emplace_back(kinds.category());
    }
  });
}

void EventsCheck::report_missing(std::int64_t first, std::int64_t last) {
  inspection_.report(event_range(first, last), first == last ? "it's missing" : "they're missing");
}

void EventsCheck::walk_sequence() {
  bool done = next_ > bound_;
  while (!done && in_order_) {
    const std::int64_t begin = next_;
    const auto error = inspection_.try_read([&](Connection& connection) { read_page(connection); });
    inspection_.progress(std::min(next_ - 1, bound_) / 2, bound_);
    done = next_ > bound_;
    if (done || !error) continue;
    // What was read before the error stands; the search begins where it ended.
    const std::int64_t readable = find_readable();
    inspection_.report(event_range(next_, readable - 1), "SQLite can't read it: " + *error);
    next_ = std::max(readable, begin + 1);
    done = next_ > bound_;
  }
  inspection_.result().events = found_;
}

void EventsCheck::read_page(Connection& connection) {
  names_.trim();
  EventRows rows{connection, kinds_, names_};
  auto row = connection.rows(sql::read_all{.from = next_, .to = bound_, .limit = event_page_rows});
  std::int64_t seen = 0;
  std::size_t bytes = 0;
  while (row.step()) {
    const std::int64_t sequence = row.sequence();
    if (sequence < next_) {
      inspection_.report("table events", "rows are out of order near " + event_number(next_));
      in_order_ = false;
      return;
    }
    if (sequence > next_) report_missing(next_, sequence - 1);
    look_at(rows, row);
    ++seen;
    ++found_;
    next_ = sequence + 1;
    bytes += row.payload().size();
    if (bytes > page_bytes) return;
  }
  if (seen == event_page_rows) return;
  if (next_ <= bound_) report_missing(next_, bound_);
  next_ = bound_ + 1;
}

void EventsCheck::look_at(EventRows& rows, const sql::event_row& row) {
  const std::int64_t sequence = row.sequence();
  try {
    const StoredEvent event = rows.read(row);
    const auto other = ids_.add(event.id, sequence);
    if (other && *other != sequence) {
      inspection_.report(event_number(sequence),
                         "it has the id of " + event_number(*other) + ", " + event.id.to_string());
    }
    check_block(rows.connection, event);
    const auto kind = static_cast<std::size_t>(event.kind.number - 1);
    if (kind < categories_.size() && categories_[kind] != event.stream.category()) {
      inspection_.report(event_number(sequence), "its kind is of category '" + categories_[kind] +
                                                     "', but it is one of '" + event.stream.name() +
                                                     "'");
    }
  } catch (const CorruptRow& e) {
    inspection_.report(event_number(sequence), e.problem());
  } catch (const Error& e) {
    if (e.is_retryable()) throw;
    inspection_.report(event_number(sequence), e.what());
  }
}

/// Readers of some kinds only look where the blocks of these say that there are any.
void EventsCheck::check_block(Connection& connection, const StoredEvent& event) {
  const auto kind = static_cast<std::size_t>(event.kind.number);
  const std::int64_t block = block_of(event.sequence.value());
  if (blocks_.size() <= kind) blocks_.resize(kind + 1, -1);
  if (std::exchange(blocks_[kind], block) == block) return;
  if (connection.rows(sql::inspect_kind_block{.kind = event.kind.number, .block = block}).step()) {
    return;
  }
  inspection_.report(event_number(event.sequence.value()),
                     "the table kind_blocks doesn't say that events of its kind are there",
                     std::string{blocks_advice});
}

bool EventsCheck::can_read(std::int64_t sequence) {
  return !inspection_.try_read([&](Connection& connection) {
    auto row = connection.rows(sql::read_all{.from = sequence, .to = bound_, .limit = 1});
    if (row.step()) (void)row.payload();
  });
}

/// The first event behind next_, or nearly, from which SQLite can read again: a damaged page may
/// hold many, so the steps double, and the last one is halved.
std::int64_t EventsCheck::find_readable() {
  std::int64_t broken = next_;
  std::int64_t step = 1;
  while (broken < bound_ && step < bound_ - broken && !can_read(broken + step)) {
    broken += step;
    step *= 2;
  }
  std::int64_t readable = step < bound_ - broken ? broken + step : bound_ + 1;
  while (readable - broken > 1) {
    const std::int64_t middle = broken + (readable - broken) / 2;
    (can_read(middle) ? readable : broken) = middle;
  }
  return readable;
}

void EventsCheck::walk_versions() {
  bool more = true;
  while (more) {
    more = false;
    // What can't be read to its end says nothing of what it lacks.
    if (!inspection_.read([&](Connection& connection) { more = read_index_page(connection); })) {
      is_index_read_ = false;
      return;
    }
    inspection_.progress(bound_ - bound_ / 2 + std::min(entries_, bound_) / 2, bound_);
  }
  if (entries_ == found_) return;
  std::string what = "its index of streams and versions has " + std::to_string(entries_) +
                     " entries for " + std::to_string(found_) + " events";
  if (entries_ > found_) {
    return inspection_.report("table events", std::move(what), std::string{lost_advice});
  }
  index_problems_.emplace_back("table events", std::move(what));
}

void EventsCheck::report_index() {
  if (index_problems_.empty()) return;
  const std::string_view advice = !is_index_read_      ? lost_advice
                                  : repeats_versions() ? repeated_advice
                                                       : event_index_advice;
  for (auto& [where, what] : index_problems_) {
    inspection_.report(std::move(where), std::move(what), std::string{advice});
  }
}

/// Reports events that have the stream and the version of another.
bool EventsCheck::repeats_versions() {
  bool repeats = false;
  inspection_.read([&](Connection& connection) {
    auto repeated = connection.rows(
        sql::repeated_versions{.through = bound_, .limit = inspection_.options().max_problems});
    while (repeated.step()) {
      repeats = true;
      inspection_.report(event_number(repeated.last()),
                         "it has the stream and the version of " + event_number(repeated.first()) +
                             ": version " + std::to_string(repeated.version()) +
                             " of stream number " + std::to_string(repeated.stream()),
                         std::string{repeated_advice});
    }
  });
  return repeats;
}

/// False at the end of the index, or when it makes no sense to go on.
bool EventsCheck::read_index_page(Connection& connection) {
  auto entry = connection.rows(
      sql::inspect_versions{.stream = stream_, .version = version_, .limit = event_page_rows});
  std::int64_t rows = 0;
  while (entry.step()) {
    if (std::pair{entry.stream(), entry.version()} <= std::pair{stream_, version_}) {
      index_problems_.emplace_back("table events",
                                   "its index of streams and versions is out of order");
      return false;
    }
    look_at_entry(entry, connection);
    ++rows;
  }
  return rows == event_page_rows;
}

void EventsCheck::look_at_entry(const sql::inspect_versions::Row& row, Connection& connection) {
  const std::int64_t stream = row.stream();
  const std::int64_t version = row.version();
  const std::int64_t sequence = row.sequence();
  const std::string where =
      "stream number " + std::to_string(stream) + ", version " + std::to_string(version);
  const bool is_first = stream != stream_;
  if (is_first) published_ = 0;
  if (version != (is_first ? 1 : version_ + 1)) {
    inspection_.report(where, is_first ? "the versions before it are missing"
                                       : "it follows version " + std::to_string(version_));
  }
  stream_ = stream;
  version_ = version;
  if (sequence <= bound_) ++entries_;

  if (!row.event_stream()) {
    inspection_.report(where,
                       "its index entry leads to " + event_number(sequence) + ", which is gone",
                       std::string{lost_advice});
    return;
  }
  if (row.event_stream() != stream || row.event_version() != version) {
    if (std::ssize(index_problems_) < inspection_.options().max_problems) {
      index_problems_.emplace_back(
          where, "its index entry leads to " + event_number(sequence) + ", which isn't it");
    }
    return;
  }
  if (row.published_before() != published_) {
    inspection_.report(event_number(sequence),
                       "it names version " + std::to_string(row.published_before()) +
                           " as the last that was to be published before it, which is " +
                           std::to_string(published_));
  }
  const EventKind* const kind = kinds_.find(row.kind(), connection);
  if (kind != nullptr && kind->publishes) published_ = version;
}

}  // namespace

void check_events(FileInspection& inspection) {
  EventsCheck{inspection}.run();
}

}  // namespace stela::sqlite
