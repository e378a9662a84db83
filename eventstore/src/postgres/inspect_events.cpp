// The checks of the events themselves: in the order of the store, and in that of each stream.
#include "event_ids.hpp"
#include "event_numbers.hpp"
#include "postgres/event_rows.hpp"
#include "postgres/inspection.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace stela::postgres {
namespace {

constexpr std::int64_t event_page_rows = 1024;

constexpr std::string_view event_index_advice =
    "one of the indexes of events differs from the table: REINDEX TABLE events, verify again, and "
    "keep a backup";

class EventsCheck {
 public:
  explicit EventsCheck(ServerInspection& inspection) : inspection_{inspection} {}

  void run() {
    if (!begin()) return;
    for (std::int64_t from = 1; from <= bound_; from += event_page_rows) {
      check_range(from, std::min(bound_, from + event_page_rows - 1));
      inspection_.progress(std::min(from + event_page_rows - 1, bound_) / 2, bound_);
    }
    tell_of_missing();
    inspection_.result().events = found_;
    walk_versions();
  }

 private:
  bool begin();
  void check_range(std::int64_t from, std::int64_t to);
  void read_range(Connection& connection, std::int64_t from, std::int64_t to);
  void look_at(EventRows& reader, const Result& rows, int row);
  void miss(std::int64_t first, std::int64_t last);
  void tell_of_missing();
  void walk_versions();
  int read_versions(Connection& connection);
  void look_at_version(const Result& rows, int row);

  ServerInspection& inspection_;
  /// Its own, so that they come from the server.
  KindTable kinds_;
  StreamNames names_;
  EventIds ids_;
  /// The last event when the check began.
  std::int64_t bound_ = 0;
  std::int64_t next_ = 1;
  std::int64_t found_ = 0;
  /// Not told of yet: more may follow. 0: none.
  std::int64_t missing_from_ = 0;
  std::int64_t missing_to_ = 0;

  /// Where the walk through the streams stands.
  std::int64_t stream_ = -1;
  std::int64_t version_ = 0;
  std::int64_t published_ = 0;
  std::int64_t entries_ = 0;
};

bool EventsCheck::begin() {
  return inspection_.read([&](Connection& connection) { bound_ = last_sequence(connection); });
}

/// What the server can't read is looked for by halves.
void EventsCheck::check_range(std::int64_t from, std::int64_t to) {
  const auto error =
      inspection_.try_read([&](Connection& connection) { read_range(connection, from, to); });
  if (!error) return;
  // What was looked at before the error stands.
  from = std::max(from, next_);
  if (from >= to) {
    inspection_.report(event_number(to), "the server can't read it: " + *error);
    next_ = to + 1;
    return;
  }
  const std::int64_t middle = from + (to - from) / 2;
  check_range(from, middle);
  check_range(middle + 1, to);
}

/// Pages end at the bytes that they may hold.
void EventsCheck::read_range(Connection& connection, std::int64_t from, std::int64_t to) {
  static const std::string sql = page_sql("e.sequence BETWEEN $1 AND $2", "sequence", "$3");
  names_.trim();
  EventRows reader{kinds_, names_};
  bool more = true;
  while (more && from <= to) {
    Parameters parameters;
    parameters.add(from).add(to).add(event_page_rows);
    const Result rows = connection.query(sql, std::move(parameters), "reading events");
    for (int row = 0; row < rows.rows(); ++row) look_at(reader, rows, row);
    more = EventRows::ends_early(rows);
    from = next_;
  }
  if (next_ <= to) miss(next_, to);
  next_ = to + 1;
}

void EventsCheck::look_at(EventRows& reader, const Result& rows, int row) {
  const std::int64_t sequence = EventRows::sequence_of(rows, row);
  if (sequence > next_) miss(next_, sequence - 1);
  next_ = sequence + 1;
  ++found_;
  try {
    const StoredEvent event = reader.read(rows, row);
    const auto other = ids_.add(event.id, sequence);
    if (other && *other != sequence) {
      inspection_.report(event_number(sequence),
                         "it has the id of " + event_number(*other) + ", " + event.id.to_string());
    }
  } catch (const CorruptRow& e) {
    inspection_.report(event_number(sequence), e.problem());
  }
}

void EventsCheck::miss(std::int64_t first, std::int64_t last) {
  if (missing_from_ != 0 && missing_to_ + 1 != first) tell_of_missing();
  if (missing_from_ == 0) missing_from_ = first;
  missing_to_ = last;
}

void EventsCheck::tell_of_missing() {
  if (missing_from_ == 0) return;
  const std::int64_t first = std::exchange(missing_from_, 0);
  inspection_.report(event_range(first, missing_to_),
                     first == missing_to_ ? "it's missing" : "they're missing");
}

/// By the other index: what it lacks shows in the number of its entries.
void EventsCheck::walk_versions() {
  int rows = event_page_rows;
  while (rows == event_page_rows) {
    rows = 0;
    if (!inspection_.read([&](Connection& connection) { rows = read_versions(connection); })) {
      return;
    }
    inspection_.progress(bound_ - bound_ / 2 + std::min(entries_, bound_) / 2, bound_);
  }
  if (entries_ == found_) return;
  inspection_.report("table events",
                     "its streams have " + std::to_string(entries_) + " versions, and it has " +
                         std::to_string(found_) + " events",
                     std::string{event_index_advice});
}

int EventsCheck::read_versions(Connection& connection) {
  Parameters parameters;
  parameters.add(stream_).add(version_).add(event_page_rows);
  const Result rows = connection.query(
      "SELECT e.stream, e.version, e.sequence, e.published_before, k.publishes, k.category, s.name "
      "FROM (SELECT x.stream, x.version, x.sequence, x.published_before, x.kind "
      "FROM stela.events AS x WHERE (x.stream, x.version) > ($1, $2) "
      "ORDER BY x.stream, x.version LIMIT $3) AS e "
      "LEFT JOIN stela.event_kinds AS k ON k.kind = e.kind "
      "LEFT JOIN stela.streams AS s ON s.stream = e.stream ORDER BY e.stream, e.version",
      std::move(parameters), "reading the versions of streams");
  for (int row = 0; row < rows.rows(); ++row) look_at_version(rows, row);
  return rows.rows();
}

void EventsCheck::look_at_version(const Result& rows, int row) {
  const std::int64_t stream = rows.integer(row, 0);
  const std::int64_t version = rows.integer(row, 1);
  const std::int64_t sequence = rows.integer(row, 2);
  const bool is_first = stream != stream_;
  if (is_first) published_ = 0;
  if (version != (is_first ? 1 : version_ + 1)) {
    inspection_.report(
        "stream number " + std::to_string(stream) + ", version " + std::to_string(version),
        is_first ? "the versions before it are missing"
                 : "it follows version " + std::to_string(version_));
  }
  stream_ = stream;
  version_ = version;
  if (sequence <= bound_) ++entries_;
  if (rows.integer(row, 3) != published_) {
    inspection_.report(event_number(sequence),
                       "it names version " + std::to_string(rows.integer(row, 3)) +
                           " as the last that was to be published before it, which is " +
                           std::to_string(published_));
  }
  const std::string_view name = rows.bytes(row, 6);
  const std::string_view category = rows.bytes(row, 5);
  if (!rows.is_null(row, 5) && !rows.is_null(row, 6) &&
      name.substr(0, name.find('-')) != category) {
    inspection_.report(event_number(sequence), "its kind is of category '" + std::string{category} +
                                                   "', but it is one of '" + std::string{name} +
                                                   "'");
  }
  if (!rows.is_null(row, 4) && rows.integer(row, 4) != 0) published_ = version;
}

}  // namespace

void check_events(ServerInspection& inspection) {
  EventsCheck{inspection}.run();
}

}  // namespace stela::postgres
