// Checks the events themselves: in store order, and in the order of each stream.
#include "care/checks.hpp"
#include "care/event_walk.hpp"
#include "care/sentence.hpp"
#include "care/walk.hpp"
#include "event_ids.hpp"
#include "event_numbers.hpp"
#include "operations_sql/care.hpp"
#include "operations_sql/catalogue.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::care {
namespace {

using database::Connection;
namespace sql = operations::sql;

/// The index can't be rebuilt: it is unique.
constexpr std::string_view repeated_advice =
    "an older state of the index came back, and versions were given out again: keep a copy, and "
    "restore a backup";

/// The event kinds by number, as stored in the table.
class Kinds {
 public:
  struct Kind {
    std::string category;
    bool publishes;
  };

  /// Null if there is none.
  const Kind* find(Connection& connection, std::int64_t number) {
    auto found = kinds_.find(number);
    if (found == kinds_.end()) {
      load(connection);
      found = kinds_.find(number);
    }
    return found != kinds_.end() ? &found->second : nullptr;
  }

 private:
  void load(Connection& connection) {
    auto rows = connection.rows(sql::kinds{});
    while (rows.step()) {
      kinds_.try_emplace(rows.kind(), Kind{std::string{rows.category()}, rows.publishes()});
    }
  }

  std::unordered_map<std::int64_t, Kind> kinds_;
};

using Look = FunctionRef<void(Connection&, const StoredEvent&)>;

class EventsCheck : private EventWalk {
 public:
  EventsCheck(Inspection& inspection, Look look)
      : EventWalk{inspection.make_reader()}, inspection_{inspection}, look_{look} {}

  void run() {
    if (!inspection_.read([&](Connection& connection) { begin(connection); })) return;
    set_range(1, bound_);
    while (step()) inspection_.progress((next() - 1) / 2, bound_);
    tell_of_gap();
    inspection_.result().events = found_;
    walk_versions();
    report_index();
  }

 private:
  void begin(Connection& connection);
  std::optional<std::string> try_read(database::Database::Work work) override {
    return inspection_.try_read(work);
  }
  void take(Connection& connection, const database::EventRow& row) override;
  void look_at(Connection& connection, const StoredEvent& event);
  void meet_again(std::int64_t sequence) override;
  void tell(const Gap& gap) override;

  void walk_versions();
  void look_at_version(Connection& connection, const sql::inspect_versions::Row& row);
  void doubt_index(std::string where, std::string what);
  void report_index();
  bool repeats_versions();

  Inspection& inspection_;
  Look look_;
  Kinds kinds_;
  EventIds ids_;

  /// The last event when the check began.
  std::int64_t bound_ = 0;
  std::int64_t found_ = 0;
  bool is_in_order_ = true;

  /// The position in the walk through the versions.
  std::int64_t stream_ = smallest;
  std::int64_t version_ = smallest;
  std::int64_t published_ = 0;
  std::int64_t entries_ = 0;
  bool is_index_read_ = true;
  /// Places and differences between the index and the events.
  std::vector<std::pair<std::string, std::string>> index_problems_;
};

void EventsCheck::begin(Connection& connection) {
  auto row = connection.rows(sql::last_sequence{});
  if (row.step()) bound_ = row.last();
  if (bound_ < std::numeric_limits<std::int64_t>::max()) return;
  inspection_.report(event_number(bound_), "no event can have this sequence");
  --bound_;
}

void EventsCheck::take(Connection& connection, const database::EventRow& row) {
  ++found_;
  if (row.event != nullptr) return look_at(connection, *row.event);
  inspection_.report(event_number(row.sequence), row.fault);
}

void EventsCheck::look_at(Connection& connection, const StoredEvent& event) {
  const std::int64_t sequence = event.sequence.value();
  const auto other = ids_.add(event.id, sequence);
  if (other && *other != sequence) {
    inspection_.report(event_number(sequence),
                       "it has the id of " + event_number(*other) + ", " + event.id.to_string());
  }
  const Kinds::Kind* const kind = kinds_.find(connection, event.kind.number);
  if (kind != nullptr && kind->category != event.stream.category()) {
    inspection_.report(event_number(sequence), "its kind is of category '" + kind->category +
                                                   "', but it is one of '" + event.stream.name() +
                                                   "'");
  }
  look_(connection, event);
}

void EventsCheck::meet_again(std::int64_t sequence) {
  if (!std::exchange(is_in_order_, false)) return;
  inspection_.report("table events", "rows are out of order near " + event_number(sequence));
}

void EventsCheck::tell(const Gap& gap) {
  const std::string missing = gap.first == gap.last ? "it's missing" : "they're missing";
  inspection_.report(
      event_range(gap.first, gap.last),
      gap.why.empty() ? missing : std::string{inspection_.engine().unreadable} + gap.why);
}

void EventsCheck::walk_versions() {
  using Key = std::pair<std::int64_t, std::int64_t>;
  const Walked walked = walk(
      inspection_, Key{stream_, version_},
      [](const Key& after) {
        return sql::inspect_versions{
            .stream = after.first, .version = after.second, .limit = page_rows};
      },
      [](const auto& row) {
        return Key{row.stream(), row.version()};
      },
      [&](Connection& connection, const auto& row) { look_at_version(connection, row); },
      [&](std::int64_t) {
        inspection_.progress(bound_ - bound_ / 2 + std::min(entries_, bound_) / 2, bound_);
      });
  // An unfinished read can't show what the index lacks.
  is_index_read_ = walked != Walked::as_far_as_readable;
  if (!is_index_read_) return;
  if (walked == Walked::into_disorder) {
    doubt_index("table events", "its index of streams and versions is out of order");
  }
  if (entries_ == found_) return;
  const care::Engine& engine = inspection_.engine();
  std::string what = sentence(engine.versions, {std::to_string(entries_), std::to_string(found_)});
  if (entries_ < found_) return doubt_index("table events", std::move(what));
  inspection_.report("table events", std::move(what), std::string{engine.many_versions_advice});
}

void EventsCheck::look_at_version(Connection& connection, const sql::inspect_versions::Row& row) {
  const std::int64_t stream = row.stream();
  const std::int64_t version = row.version();
  const std::int64_t sequence = row.sequence();
  const auto where = [&] {
    return "stream number " + std::to_string(stream) + ", version " + std::to_string(version);
  };
  const bool is_first = stream != stream_;
  if (is_first) published_ = 0;
  if (version != (is_first ? 1 : version_ + 1)) {
    inspection_.report(where(), is_first ? "the versions before it are missing"
                                         : "it follows version " + std::to_string(version_));
  }
  stream_ = stream;
  version_ = version;
  if (sequence <= bound_) ++entries_;

  if (!row.event_stream()) {
    return inspection_.report(
        where(), "its index entry leads to " + event_number(sequence) + ", which is gone",
        std::string{inspection_.engine().many_versions_advice});
  }
  if (row.event_stream() != stream || row.event_version() != version) {
    return doubt_index(where(),
                       "its index entry leads to " + event_number(sequence) + ", which isn't it");
  }
  if (row.published_before() != published_) {
    inspection_.report(event_number(sequence),
                       "it names version " + std::to_string(row.published_before()) +
                           " as the last that was to be published before it, which is " +
                           std::to_string(published_));
  }
  const Kinds::Kind* const kind = kinds_.find(connection, row.kind());
  if (kind != nullptr && kind->publishes) published_ = version;
}

/// Keeps the problem, because the advice depends on later findings.
void EventsCheck::doubt_index(std::string where, std::string what) {
  if (std::ssize(index_problems_) >= inspection_.options().max_problems) return;
  index_problems_.emplace_back(std::move(where), std::move(what));
}

void EventsCheck::report_index() {
  if (index_problems_.empty()) return;
  const std::string_view advice = !is_index_read_      ? inspection_.engine().many_versions_advice
                                  : repeats_versions() ? repeated_advice
                                                       : inspection_.engine().few_versions_advice;
  for (auto& [where, what] : index_problems_) {
    inspection_.report(std::move(where), std::move(what), std::string{advice});
  }
}

/// Reports events that share stream and version with another event.
bool EventsCheck::repeats_versions() {
  bool repeats = false;
  inspection_.read([&](Connection& connection) {
    auto repeated = connection.rows(sql::inspect_repeated_versions{
        .through = bound_, .limit = inspection_.options().max_problems});
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

}  // namespace

void check_events(Inspection& inspection, Look look) {
  EventsCheck{inspection, look}.run();
}

}  // namespace stela::care
