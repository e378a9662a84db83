#include "simulation/consumers/audit.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace stela::sim {
namespace {

constexpr const char* triggers = R"sql(
CREATE TABLE effects (effect INTEGER PRIMARY KEY, event TEXT, process INTEGER, broker_stream TEXT);
CREATE TABLE journal (entry INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, a TEXT, b TEXT, c TEXT,
                      d INTEGER, e INTEGER, f INTEGER, g INTEGER);
CREATE TRIGGER note_effect AFTER INSERT ON effects BEGIN
  INSERT INTO journal (what, a, b, c, d)
  SELECT 'effect', NEW.event, NEW.broker_stream, r.owner, NEW.process
  FROM inbox_readers AS r WHERE r.broker_stream = NEW.broker_stream;
END;
CREATE TRIGGER note_park AFTER INSERT ON inbox_parked BEGIN
  INSERT INTO journal (what, a, b, c, d, e, f, g)
  VALUES ('park', json_extract(NEW.headers, '$."ce-id"'), NEW.error, NEW.broker_stream, NEW.parked,
          NEW.source IS NULL, NEW.broker_sequence, NEW.broker_time);
END;
CREATE TRIGGER note_unpark AFTER DELETE ON inbox_parked BEGIN
  INSERT INTO journal (what, d) VALUES ('unpark', OLD.parked);
END;
CREATE TRIGGER note_gap AFTER INSERT ON inbox_gaps BEGIN
  INSERT INTO journal (what, a, b, d, e)
  VALUES ('gap', NEW.source, NEW.stream, NEW.after, NEW.missing);
END;
CREATE TRIGGER note_move AFTER UPDATE OF position, stream_made_at ON inbox_readers BEGIN
  INSERT INTO journal (what, a, d, e) VALUES ('move', NEW.broker_stream, NEW.position, NEW.stream_made_at);
END;
CREATE TRIGGER note_lease AFTER UPDATE OF owner ON inbox_readers BEGIN
  INSERT INTO journal (what, a, b) VALUES ('lease', NEW.broker_stream, NEW.owner);
END;
)sql";

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? std::string{} : std::string{text};
}

}  // namespace

Audit::Audit(const std::string& database, const Subject& subject)
    : subject_{subject}, database_{database} {
  database_.run(triggers);
  sqlite3_stmt* raw = nullptr;
  const char* const sql =
      "SELECT entry, what, a, b, c, d, e, f, g FROM journal WHERE entry > ?1 ORDER BY entry";
  if (sqlite3_prepare_v2(database_.handle(), sql, -1, &raw, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(database_.handle())};
  }
  read_.reset(raw);
}

void Audit::contradict(const std::string& what) {
  if (contradiction_.empty()) contradiction_ = what;
}

void Audit::look() {
  sqlite3_stmt* const rows = read_.get();
  sqlite3_bind_int64(rows, 1, seen_);
  while (sqlite3_step(rows) == SQLITE_ROW) {
    seen_ = sqlite3_column_int64(rows, 0);
    take({.what = text_at(rows, 1),
          .a = text_at(rows, 2),
          .b = text_at(rows, 3),
          .c = text_at(rows, 4),
          .numbers = {sqlite3_column_int64(rows, 5), sqlite3_column_int64(rows, 6),
                      sqlite3_column_int64(rows, 7), sqlite3_column_int64(rows, 8)}});
  }
  sqlite3_reset(rows);
  settle();
}

int Audit::find(const std::string& id) {
  for (std::size_t i = ids_.size(); i < subject_.events.size(); ++i) {
    ids_.emplace(subject_.events[i].id.to_string(), static_cast<int>(i));
  }
  states_.resize(subject_.events.size());
  const auto at = ids_.find(id);
  return at == ids_.end() ? -1 : at->second;
}

std::string Audit::name(int number) const {
  const WrittenEvent& e = event(number);
  return "version " + std::to_string(e.version) + " of stream " + std::to_string(e.stream) +
         " of store " + std::to_string(e.store) + " (event " + std::to_string(number) + ")";
}

void Audit::note_failure(const std::string& id) {
  if (const int number = find(id); number >= 0) ++state(number).failures;
}

/// It is tried again as often as other messages that fail. The first time nobody knew, nor who came
/// after one that left the stream; and operators may want it, or what is parked
/// with it, to be tried once more.
void Audit::note_death(const std::string& id, const std::string& broker_stream) {
  const int number = find(id);
  if (number < 0) return;
  State& now = state(number);
  ++now.failures;
  const int releases = readings_[broker_stream].releases;
  if (now.deaths == 0) now.releases_before = releases;
  // What is parked may be tried again by the reader of another stream.
  const int unknown = 2 + std::max(releases - now.releases_before, 0) + now.retries + busy_;
  if (++now.deaths > subject_.max_attempts + unknown) {
    contradict(name(number) + " killed " + std::to_string(now.deaths) + " processes");
  }
}

void Audit::note_unknown(const std::string& id) {
  if (const int number = find(id); number >= 0 && !state(number).unknown_since) {
    state(number).unknown_since = subject_.stage.now();
  }
}

/// It forgets how often it has tried.
void Audit::note_move() {
  has_moved_ = true;
  for (State& each : states_) each.deaths = 0;
}

/// And with it those behind it.
void Audit::note_retry(std::int64_t parked) {
  const auto at = parked_.find(parked);
  if (at == parked_.end() || at->second.event < 0) return;
  const WrittenEvent& first = event(at->second.event);
  for (const auto& [number, other] : parked_) {
    if (other.event < 0) continue;
    const WrittenEvent& e = event(other.event);
    if (e.store == first.store && e.stream == first.stream) ++state(other.event).retries;
  }
}

void Audit::tell(const Row& row) const {
  std::string line = row.what + ' ' + row.a + ' ' + row.b.substr(0, 60) + ' ' + row.c;
  const auto at = ids_.find(row.a);
  if (at != ids_.end()) line += ' ' + name(at->second);
  for (const std::int64_t number : row.numbers) line += ' ' + std::to_string(number);
  std::printf("%9.3f s    %s\n", static_cast<double>(subject_.stage.now()) / second, line.c_str());
}

void Audit::take(const Row& row) {
  (void)find({});
  if (subject_.trace) tell(row);
  if (row.what == "effect") return take_effect(row);
  if (row.what == "park") return take_park(row);
  if (row.what == "unpark") return take_unpark(row.numbers[0]);
  if (row.what == "gap") return take_gap(row);
  if (row.what == "move") return take_move(row);
  take_lease(row);
}

void Audit::take_effect(const Row& row) {
  ++met["effects"];
  const int number = find(row.a);
  hash_ = (hash_ ^ static_cast<std::uint64_t>(number + 2) ^
           static_cast<std::uint64_t>(row.numbers[0] << 32)) *
          0x100000001b3;
  if (number < 0) return contradict("an event took effect that nobody wrote");
  State& now = state(number);
  if (++now.effects > 1 && !now.is_of_another_history) {
    return contradict(name(number) + " took effect twice");
  }
  if (!now.parked.empty()) return contradict(name(number) + " took effect while it is parked");
  now.is_released = false;
  const auto [owner, is_new] = owners_.emplace(row.c, row.numbers[0]);
  if (row.c.empty() || owner->second != row.numbers[0]) {
    return contradict(name(number) + " took effect by a process that doesn't hold the lease");
  }
  check_predecessors(number);
}

void Audit::check_predecessors(int number) {
  // An operator wanted it, whatever is parked of the history before.
  if (state(number).is_of_another_history) return;
  for (int before = event(number).before; before >= 0; before = event(before).before) {
    // Who begins later doesn't know what wasn't published before.
    const bool is_unknown =
        !event(before).is_published() && began_late_ && !knows_stream_of(before);
    // Its transaction may say afterwards that it is missing.
    // What a later one has passed rightly stays passed, whatever becomes of the broker's stream.
    state(before).has_aged_out = state(before).has_aged_out || may_have_aged_out(before);
    if (is_unknown || may_be_passed(before)) continue;
    passed_.emplace_back(number, before);
  }
}

/// Whether an earlier one of its stream was met.
bool Audit::knows_stream_of(int number) const {
  for (int before = event(number).before; before >= 0; before = event(before).before) {
    if (event(before).kind == EventKindOf::ignored && !state(before).is_early) return true;
  }
  return has_met_stream_of(number);
}

/// The same, as far as it left a trace.
bool Audit::has_met_stream_of(int number) const {
  for (int before = event(number).before; before >= 0; before = event(before).before) {
    const State& now = state(before);
    if (now.effects > 0 || !now.parked.empty() || now.is_discarded || now.was_alone) return true;
  }
  return false;
}

/// Before the consumer began, as far as it knows: it has met nothing of its stream, and the
/// broker's doesn't begin with its first message.
bool Audit::may_have_aged_out(int number) const {
  const BrokerStream* const stream = subject_.broker.find(event(number).broker_stream);
  return stream != nullptr && stream->first > 1 && !has_met_stream_of(number);
}

/// Whether later ones of its stream may take effect without it.
bool Audit::may_be_passed(int number) const {
  const State& now = state(number);
  if (event(number).kind == EventKindOf::ignored || is_taken_for_copy(number)) return true;
  return now.effects > 0 || now.is_discarded || now.is_reported || now.is_early || now.was_alone ||
         now.has_aged_out;
}

void Audit::take_park(const Row& row) {
  const bool is_alone = row.numbers[1] != 0;
  ++met[row.b.empty() ? "parked behind others" : "parked"];
  const int number = find(row.a);
  if (number < 0) {
    ++met["foreign messages parked"];
    foreign_.emplace(row.c, static_cast<std::uint64_t>(row.numbers[2]), row.numbers[3]);
    parked_.emplace(row.numbers[0], Parked{.is_alone = true});
    return;
  }
  State& now = state(number);
  parked_.emplace(row.numbers[0], Parked{number, is_alone});
  now.parked.insert(row.numbers[0]);
  now.was_alone = now.was_alone || is_alone;
  const bool is_of_another = row.b.find("another history") != std::string::npos;
  now.is_of_another_history = now.is_of_another_history || is_of_another;
  if (now.effects > 0 && !now.is_of_another_history) {
    return contradict(name(number) + " was parked though it is in effect");
  }
  if (is_of_another) ++met["other histories"];
  if (is_of_another && !has_restored_) {
    return contradict(name(number) + " was taken for another history");
  }
  const bool has_failed = row.b.find("it fails") != std::string::npos ||
                          row.b.find("the process ended") != std::string::npos;
  const int blame = now.failures + readings_[row.c].takeovers + busy_;
  if (has_failed && blame < subject_.max_attempts) {
    contradict(name(number) + " was parked after " + std::to_string(blame) + " attempts");
  }
  const bool is_unknown = row.b.find("isn't known") != std::string::npos;
  if (!is_unknown) return;
  ++met["events of a version that nobody knew"];
  const Time waited = subject_.stage.now() - now.unknown_since.value_or(0);
  if (waited < subject_.unknown_version_wait) {
    contradict(name(number) + " was parked before a newer program could come");
  }
}

void Audit::take_unpark(std::int64_t parked) {
  const auto at = parked_.find(parked);
  if (at == parked_.end()) return;
  const int number = at->second.event;
  parked_.erase(at);
  if (number < 0) return;
  State& now = state(number);
  now.parked.erase(parked);
  if (discarded_.contains(parked)) {
    ++met["discarded by an operator"];
    now.is_discarded = true;
    return;
  }
  ++met["parked messages handled later"];
  now.is_released = now.effects == 0;
  released_.push_back(number);
}

/// What was taken from the list is in effect by now, in the same transaction.
void Audit::settle() {
  for (const int number : released_) {
    const bool is_gone = state(number).is_released && state(number).parked.empty() &&
                         event(number).kind == EventKindOf::handled;
    if (is_gone) contradict(name(number) + " was parked, and vanished");
  }
  released_.clear();
  for (const auto& [number, before] : passed_) {
    if (state(before).is_reported) continue;
    contradict(name(number) + " took effect before " + name(before));
  }
  passed_.clear();
}

void Audit::take_gap(const Row& row) {
  ++met["gaps"];
  for (std::size_t i = 0; i < subject_.events.size(); ++i) {
    const WrittenEvent& e = subject_.events[i];
    const Writer& writer = *subject_.writers[static_cast<std::size_t>(e.store)];
    if (writer.store_id() != row.a || writer.name_of(e.stream).name() != row.b) continue;
    if (e.version <= row.numbers[0] || e.version > row.numbers[1]) continue;
    const int number = static_cast<int>(i);
    state(number).is_reported = true;
    if (has_restored_) continue;
    const bool began_anew = readings_[e.broker_stream].began_anew;
    // The first message of a stream that has its beginning says what the broker has lost.
    const bool is_lost = readings_[e.broker_stream].began_at_front;
    if (state(number).is_early && !is_lost && !began_anew && !knows_stream_of(number)) {
      contradict(name(number) + " is said to be missing, and was before the beginning");
    }
    if (state(number).effects > 0)
      contradict(name(number) + " is in effect, and said to be missing");
    if (is_still_to_come(number)) {
      contradict(name(number) + " is said to be missing, and is still to come in " +
                 event(number).broker_stream);
    }
  }
}

/// Where it was published first, and there it comes before what was published later.
bool Audit::is_still_to_come(int number) const {
  const WrittenEvent& e = event(number);
  if (!e.is_published()) return false;
  const BrokerStream* const stream = subject_.broker.find(e.broker_stream);
  const auto reading = readings_.find(e.broker_stream);
  if (stream == nullptr || reading == readings_.end()) return false;
  if (stream->made_at != reading->second.made_at) return false;
  return std::any_of(stream->messages.upper_bound(reading->second.position), stream->messages.end(),
                     [&](const auto& each) { return each.second.time == e.stored_at; });
}

void Audit::take_move(const Row& row) {
  ++moves_;
  Reading& reading = readings_[row.a];
  reading.position = static_cast<std::uint64_t>(row.numbers[0]);
  reading.began_anew =
      reading.began_anew || (reading.has_begun && reading.made_at != row.numbers[1]);
  reading.made_at = row.numbers[1];
  reading.takeovers = 0;
  if (!reading.has_begun && reading.made_at != 0) begin(row.a, reading);
}

void Audit::begin(const std::string& stream, Reading& reading) {
  reading.has_begun = true;
  const BrokerStream* const at_broker = subject_.broker.find(stream);
  reading.began_at_front = reading.position == 0 && at_broker != nullptr && at_broker->first <= 1;
  for (std::size_t i = 0; i < subject_.events.size(); ++i) {
    const WrittenEvent& e = subject_.events[i];
    const int number = static_cast<int>(i);
    if (e.broker_stream != stream || is_still_to_come(number)) continue;
    state(number).is_early = true;
    began_late_ = true;
    ++met["events before the beginning"];
    // Nor does it know what wasn't published before.
    for (int before = e.before; before >= 0; before = event(before).before) {
      state(before).is_early = state(before).is_early || !event(before).is_published();
    }
  }
}

void Audit::take_lease(const Row& row) {
  Reading& reading = readings_[row.a];
  if (!reading.owner.empty() && !row.b.empty() && reading.owner != row.b) {
    ++reading.takeovers;
    ++met["take-overs"];
  }
  if (row.b.empty()) ++reading.releases;
  reading.owner = row.b;
}

bool Audit::is_resolved(int number) const {
  const State& now = state(number);
  if (event(number).kind == EventKindOf::ignored) return true;
  return now.effects > 0 || now.is_discarded || !now.parked.empty();
}

bool Audit::is_at_broker(int number) const {
  for (const auto& [name, stream] : subject_.broker.streams()) {
    for (const auto& [sequence, stored] : stream.messages) {
      if (stored.sent.event == number) return true;
    }
  }
  return false;
}

bool Audit::knows_stream(const std::string& name) const {
  const BrokerStream* const stream = subject_.broker.find(name);
  const auto reading = readings_.find(name);
  return stream != nullptr && reading != readings_.end() &&
         reading->second.made_at == stream->made_at && reading->second.position <= stream->last();
}

bool Audit::is_done() const {
  for (const auto& [name, stream] : subject_.broker.streams()) {
    const auto reading = readings_.find(name);
    if (reading == readings_.end()) return stream.messages.empty();
    const std::uint64_t end = stream.find_last(subject_.filter).value_or(0);
    const Reading& now = reading->second;
    const bool has_read = end == 0 || (now.made_at == stream.made_at && end <= now.position &&
                                       now.position <= stream.last());
    if (!has_read) return false;
  }
  return true;
}

bool Audit::is_foreign(std::int64_t parked) const {
  const auto at = parked_.find(parked);
  return at != parked_.end() && at->second.event < 0;
}

/// A store that was restored has another event in its place.
bool Audit::is_replaced(int number) const {
  const WrittenEvent& e = event(number);
  for (std::size_t i = 0; has_restored_ && i < states_.size(); ++i) {
    const WrittenEvent& other = subject_.events[i];
    const bool is_same_place =
        other.store == e.store && other.stream == e.stream && other.version == e.version;
    if (is_same_place && other.id != e.id && other.is_published()) return true;
  }
  return false;
}

std::set<int> Audit::lost() const {
  std::set<int> lost;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const int number = static_cast<int>(i);
    if (event(number).is_published() && !is_resolved(number) && !is_at_broker(number)) {
      lost.insert(number);
    }
  }
  return lost;
}

void Audit::judge() {
  look();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const int number = static_cast<int>(i);
    const State& now = state(number);
    if (now.is_early || is_resolved(number) || !event(number).is_published()) continue;
    // What a later one has passed rightly, once it comes again, is a copy.
    if (is_taken_for_copy(number) || now.has_aged_out) continue;
    if (is_at_broker(number)) {
      contradict(name(number) +
                 " was skipped: it is in its stream, and neither in effect nor parked");
    } else if (!now.is_reported && !is_replaced(number) && !may_have_aged_out(number)) {
      contradict(name(number) + " was lost, and nobody said so");
    }
  }
  for (const auto& [name, stream] : subject_.broker.streams()) {
    for (const auto& [sequence, stored] : stream.messages) {
      if (stored.sent.event >= 0 || !lets_through(subject_.filter, stored)) continue;
      if (foreign_.contains({name, sequence, stored.time})) continue;
      contradict("a foreign message of " + name + " was skipped");
    }
  }
}

}  // namespace stela::sim
