// Timers against bare loops that run the same statements on the same tables.
#include "bench.hpp"
#include "raw.hpp"

#include <stela/eventstore.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;
using sqlite::Durability;

struct Booked {
  static constexpr EventType event_type{"booking.booked", 1, local};
  std::int64_t due = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(due));
  }
};
struct Lapsed {
  static constexpr EventType event_type{"booking.lapsed", 1, local};
};
struct Deadline {
  static constexpr TimerType timer_type{"deadline", 1};
};

class Deadlines {
 public:
  static constexpr ProcessType process_type{"deadlines"};
  using Events = EventSet<Booked>;
  using Timers = TimerSet<Deadline>;

  void react(Process& process, const Recorded<Booked>& e) {
    process.set(Deadline{}, Timestamp{std::chrono::microseconds{e->due}});
  }
  void due(Process& process, const Deadline&) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(), Lapsed{});
  }
};

std::int64_t micros(Timestamp time) {
  return time.time_since_epoch().count();
}

/// Bookings, each in a stream of its own.
void book(Store& store, std::int64_t first, std::int64_t count, Timestamp due) {
  constexpr std::int64_t at_once = 500;
  for (std::int64_t i = 0; i < count; i += at_once) {
    UnitOfWork unit{store};
    for (std::int64_t k = i; k < std::min(count, i + at_once); ++k) {
      unit.append(StreamId::of("booking", std::to_string(first + k)), ExpectedVersion::none(),
                  Booked{micros(due)});
    }
    unit.commit();
  }
}

/// A hotel whose clock the figures move.
struct Hotel {
  explicit Hotel(const std::string& path)
      : store{sqlite::open(path, {.durability = Durability::relaxed, .clock = &clock})},
        projections{store} {
    projections.add_process(Deadlines{});
    runner = std::make_unique<Runner>(projections);
  }

  testing::ManualClock clock;
  Store store;
  Projections projections;
  std::unique_ptr<Runner> runner;
  std::int64_t booked = 0;
};

/// One operation sets a timer for each of `count` events.
class Setting final : public Subject {
 public:
  Setting(const std::string& path, std::int64_t count) : hotel_{path}, count_{count} {}

  void prepare() override {
    book(hotel_.store, hotel_.booked, count_, hotel_.clock.now() + 1h);
    hotel_.booked += count_;
  }
  void run() override { hotel_.runner->run_once(); }

 private:
  Hotel hotel_;
  const std::int64_t count_;
};

/// One operation fires `count` timers, each of which records an event.
class Firing final : public Subject {
 public:
  Firing(const std::string& path, std::int64_t count) : hotel_{path}, count_{count} {}

  void prepare() override {
    book(hotel_.store, hotel_.booked, count_, hotel_.clock.now() + 1h);
    hotel_.booked += count_;
    hotel_.runner->run_once();
    hotel_.clock.advance(1h);
  }
  void run() override {
    if (hotel_.runner->run_once().timers_fired != count_) throw std::logic_error{"timers are left"};
  }

 private:
  Hotel hotel_;
  const std::int64_t count_;
};

constexpr const char* set_timer =
    "INSERT INTO projection_timers (process, key, kind, version, generation, due_at, wake_at, "
    "recurrence, set_at, correlation_id, causation_id, metadata, payload) VALUES ('deadlines', ?1, "
    "'deadline', 1, ?2, ?3, ?3, '', ?4, ?5, ?5, '', x'7b7d') ON CONFLICT (process, key, kind) DO "
    "UPDATE SET generation = excluded.generation";
constexpr const char* insert_event =
    "INSERT INTO events (sequence, stream, version, kind, recorded_at, event_id, correlation_id, "
    "causation_id, published_before, metadata, checksum, payload) VALUES (?1, ?2, ?3, 1, ?4, "
    "randomblob(16), ?5, randomblob(16), 0, NULL, 0, x'7b7d')";
constexpr const char* id = "0190c3a4-0000-7000-8000-000000000000";

/// The tables of a hotel, with bare statements: no reading of aggregates, no context, no checks.
class BareHotel {
 public:
  explicit BareHotel(const std::string& path) {
    { const Hotel maker{path}; }
    database_ = std::make_unique<RawDatabase>(path, RawOptions{});
    const auto prepare = [&](const char* sql) {
      return std::make_unique<RawStatement>(*database_, sql);
    };
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    event_ = prepare(insert_event);
    set_ = prepare(set_timer);
    read_ = prepare(
        "SELECT sequence, stream, kind, recorded_at, correlation_id, metadata, payload "
        "FROM events WHERE sequence > ?1 ORDER BY sequence LIMIT 64");
    advance_ = prepare("UPDATE projections SET position = ?1 WHERE name = 'deadlines'");
    due_ = prepare(
        "SELECT key, generation, payload, correlation_id FROM projection_timers WHERE "
        "process = 'deadlines' AND state = 'pending' AND wake_at <= ?1 "
        "ORDER BY wake_at, key, kind LIMIT 256");
    take_ = prepare(
        "DELETE FROM projection_timers WHERE process = 'deadlines' AND key = ?1 AND "
        "kind = 'deadline' AND generation = ?2");
    fired_ = prepare("UPDATE projection_processes SET fired = fired + 256");
  }

  /// Events of new streams.
  void book(std::int64_t count) {
    begin_->run();
    for (std::int64_t i = 0; i < count; ++i) append(++streams_, 1);
    commit_->run();
  }

  void set_timers(std::int64_t due) {
    for (std::vector<std::int64_t> page = next_page(); !page.empty(); page = next_page()) {
      begin_->run();
      for (const std::int64_t stream : page) {
        const std::string key = "booking-" + std::to_string(stream);
        set_->bind_text(1, key);
        set_->bind(2, ++generation_);
        set_->bind(3, due);
        set_->bind(4, due);
        set_->bind_text(5, id);
        set_->run();
      }
      position_ += static_cast<std::int64_t>(page.size());
      advance_->bind(1, position_);
      advance_->run();
      commit_->run();
    }
  }

  void fire_timers(std::int64_t now) {
    for (;;) {
      begin_->run();
      std::vector<std::pair<std::string, std::int64_t>> page;
      due_->bind(1, now);
      while (due_->step()) page.emplace_back(std::string{due_->bytes(0)}, due_->integer(1));
      due_->reset();
      for (const auto& [key, generation] : page) {
        take_->bind_text(1, key);
        take_->bind(2, generation);
        take_->run();
        append(std::stoll(key.substr(8)), 2);
      }
      advance_->bind(1, sequence_);
      advance_->run();
      fired_->run();
      commit_->run();
      if (page.empty()) return;
    }
  }
  /// What was fired needs no timers.
  void skip_events() { position_ = sequence_; }

 private:
  void append(std::int64_t stream, std::int64_t version) {
    event_->bind(1, ++sequence_);
    event_->bind(2, stream);
    event_->bind(3, version);
    event_->bind(4, sequence_);
    event_->bind_text(5, id);
    event_->run();
  }
  std::vector<std::int64_t> next_page() {
    std::vector<std::int64_t> streams;
    read_->bind(1, position_);
    while (read_->step()) streams.push_back(read_->integer(1));
    read_->reset();
    return streams;
  }

  std::unique_ptr<RawDatabase> database_;
  std::unique_ptr<RawStatement> begin_, commit_, event_, set_, read_, advance_, due_, take_, fired_;
  std::int64_t streams_ = 0;
  std::int64_t sequence_ = 0;
  std::int64_t position_ = 0;
  std::int64_t generation_ = 0;
};

class BareSetting final : public Subject {
 public:
  BareSetting(const std::string& path, std::int64_t count) : hotel_{path}, count_{count} {}
  void prepare() override { hotel_.book(count_); }
  void run() override { hotel_.set_timers(++due_); }

 private:
  BareHotel hotel_;
  const std::int64_t count_;
  std::int64_t due_ = 0;
};

class BareFiring final : public Subject {
 public:
  BareFiring(const std::string& path, std::int64_t count) : hotel_{path}, count_{count} {}
  void prepare() override {
    hotel_.book(count_);
    hotel_.set_timers(1);
  }
  void run() override {
    hotel_.fire_timers(1);
    hotel_.skip_events();
  }

 private:
  BareHotel hotel_;
  const std::int64_t count_;
};

template <class Stela, class Bare>
void measure_rate(Bench& bench, const std::string& name, const char* what, std::int64_t count,
                  Goal goal) {
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  Stela stela{folder.file("stela.db"), count};
  Bare bare{folder.file("raw.db"), count};
  const std::array<Subject*, 2> subjects{&stela, &bare};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(5), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = what,
                  .mode = "relaxed",
                  .place = Place::disk,
                  .unit = "timers/s",
                  .goal = goal},
                 rounds[0], rounds[1], static_cast<double>(count));
}

/// How much later than it was due a timer has recorded its event.
void measure_lateness(Bench& bench) {
  const std::string name = "timer.due_to_fired";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  auto store = sqlite::open(folder.file("hotel.db"));
  Projections projections{store};
  projections.add_process(Deadlines{});
  Runner runner{projections};
  std::atomic<std::int64_t> fired_at{0};
  const auto subscription = store.on_commit([&](const CommitNotice& notice) {
    if (notice.events.front().type() == Lapsed::event_type.name) {
      fired_at = micros(system_clock().now());
      fired_at.notify_one();
    }
  });
  const std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};
  std::vector<std::uint64_t> late, commits;
  for (int i = 0; i < bench.sized(5, 200, 1'000); ++i) {
    const Timestamp due = system_clock().now() + 20ms;
    fired_at = 0;
    commits.push_back(static_cast<std::uint64_t>(1e9 * seconds([&] { book(store, i, 1, due); })));
    fired_at.wait(0);
    late.push_back(static_cast<std::uint64_t>(1'000 * (fired_at.load() - micros(due))));
  }
  const Round lateness = round_of(late);
  const Round commit = round_of(commits);
  bench.report().add({.name = name,
                      .what = "p99 from the due time until the event of the timer is committed, "
                              "against an append",
                      .mode = "full",
                      .place = Place::disk,
                      .unit = "ms",
                      .stela = lateness.p99 / 1e6,
                      .raw = commit.p99 / 1e6,
                      .ratio = {lateness.p99 / commit.p99, 0, 0},
                      .goal = limit(5),
                      .more = {{"p50_ms", lateness.p50 / 1e6}}});
}

/// A hotel with `count` timers that wait, and its runner asleep.
class Waiting {
 public:
  Waiting(const std::string& path, std::int64_t count)
      : path_{path},
        store_{sqlite::open(path, {.durability = Durability::relaxed})},
        projections_{store_} {
    projections_.add_process(Deadlines{});
    Runner runner{projections_};
    for (std::int64_t i = 0; i < count; i += 10'000) {
      book(store_, i, std::min<std::int64_t>(10'000, count - i), system_clock().now() + 24h * 365);
    }
    runner.run_once();
    sqlite::checkpoint(store_);
    thread_ = std::jthread{[this](std::stop_token stop) { Runner{projections_}.run(stop); }};
  }

  /// Pages that 100 appends put into the log, together with the runner's checkpoints.
  double pages_of_appends() {
    sqlite::checkpoint(store_);
    const auto before = log_size();
    for (int i = 0; i < 100; ++i) {
      UnitOfWork unit{store_};
      unit.append(StreamId::parse("other-1"), ExpectedVersion::any(), Lapsed{});
      unit.commit();
      (void)projections_.wait_for("deadlines", store_.last_sequence(), 10s);
    }
    return static_cast<double>(log_size() - before) / 4096.0 / 100.0;
  }
  /// Per cent of a core that the sleeping runner takes.
  double idle_load(std::chrono::milliseconds length) {
    clockid_t clock{};
    pthread_getcpuclockid(thread_.native_handle(), &clock);
    const auto read = [&] {
      timespec time{};
      clock_gettime(clock, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    const double before = read();
    const double taken = seconds([&] { pass_until(std::chrono::steady_clock::now() + length); });
    return 100 * (read() - before) / taken;
  }

 private:
  std::uintmax_t log_size() const { return std::filesystem::file_size(path_ + "-wal"); }

  const std::string path_;
  Store store_;
  Projections projections_;
  std::jthread thread_;
};

void measure_waiting(Bench& bench) {
  if (!bench.begins("timer.waiting")) return;
  const Folder folder{bench.places().disk};
  const auto many = bench.sized<std::int64_t>(1'000, 100'000, 1'000'000);
  const std::chrono::milliseconds length{bench.sized(50, 2'000, 5'000)};
  Waiting none{folder.file("none.db"), 0};
  Waiting all{folder.file("many.db"), many};
  const double pages = all.pages_of_appends();
  const double pages_without = none.pages_of_appends();
  bench.report().add({.name = "timer.waiting.append",
                      .what = "pages of an append and the checkpoint after it, with " +
                              std::to_string(many) + " timers that wait, against none",
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "pages",
                      .stela = pages,
                      .raw = pages_without,
                      .ratio = {pages / pages_without, 0, 0},
                      .goal = at_most(1.1)});
  const double load = all.idle_load(length);
  const double load_without = none.idle_load(length);
  bench.report().add({.name = "timer.waiting.idle",
                      .what = "of a core, for a runner that sleeps with " + std::to_string(many) +
                              " timers, against one with none",
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "%",
                      .stela = load,
                      .raw = load_without,
                      .ratio = {load / std::max(load_without, 0.001), 0, 0},
                      .goal = limit(0.5)});
}

}  // namespace

void timer_figures(Bench& bench) {
  const auto count = bench.sized<std::int64_t>(100, 20'000, 100'000);
  measure_rate<Setting, BareSetting>(
      bench, "timer.set", "events that set a timer each, against a loop of the same statements",
      count, at_least(0.5));
  measure_rate<Firing, BareFiring>(
      bench, "timer.fire",
      "timers of a backlog that record an event each, against a loop of the same statements", count,
      at_least(0.4));
  measure_lateness(bench);
  measure_waiting(bench);
}

}  // namespace stela::bench
