// A whole application in one store: callers who decide, a relay, a runner, and a consumer of what
// was published. All options are the defaults; on PostgreSQL, against the same on SQLite.
#include "contest.hpp"
#include "decisions.hpp"
#include "postgres_shop.hpp"
#include "raw_nats.hpp"
#include "raw_postgres.hpp"
#include "support/process.hpp"

#include <stela/nats/consumer.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/projections.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::bench {
namespace {

using std::chrono::milliseconds;

std::int64_t steady_ns() {
  return std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count();
}

/// When each event came somewhere, by its sequence.
class Arrivals {
 public:
  void note(std::int64_t sequence) {
    // What is more than a run can make isn't measured.
    if (sequence < capacity) times_[static_cast<std::size_t>(sequence)].store(steady_ns());
  }
  std::int64_t at(std::int64_t sequence) const {
    return sequence < capacity ? times_[static_cast<std::size_t>(sequence)].load() : 0;
  }

 private:
  static constexpr std::int64_t capacity = 1'000'000;

  std::vector<std::atomic<std::int64_t>> times_ = std::vector<std::atomic<std::int64_t>>(capacity);
};

struct Seen {
  Arrivals committed = {};
  Arrivals projected = {};
  Arrivals handled = {};
};

class SeatsTaken {
 public:
  static constexpr ProjectorType projector_type{"seats_taken", 1};
  using Events = EventSet<CourseDefined, Subscribed>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {seats_taken} (course TEXT PRIMARY KEY, taken BIGINT)");
  }
  void project(ReadModel&, const Recorded<CourseDefined>&) {}
  void project(ReadModel& model, const Recorded<Subscribed>& e) {
    model.execute(
        "INSERT INTO {seats_taken} AS s VALUES (?1, 1) "
        "ON CONFLICT (course) DO UPDATE SET taken = s.taken + 1",
        e->course.key());
  }
};

/// Of a caller who sees that the decision is committed.
class Reserving final : public Subject {
 public:
  Reserving(EventStore& store, const School& school, std::uint64_t seed, Arrivals& committed)
      : subscribing_{store, school, seed}, committed_{committed} {}

  void prepare() override { subscribing_.prepare(); }
  void run() override {
    subscribing_.run();
    committed_.note(subscribing_.sequence.value());
  }

 private:
  Subscribing subscribing_;
  Arrivals& committed_;
};

Projections& with_seats_taken(Projections& projections) {
  projections.add(SeatsTaken{});
  return projections;
}

bool publish_all(const EventType&, const StreamId&) {
  return true;
}

/// A store that has a school, and whatever works beside its callers.
class BusySchool {
 public:
  BusySchool(Store store, const School& school)
      : school_{school}, store_{std::move(store)}, publisher_{{.url = broker_.url()}} {
    RawNats{broker_.url()}.make_stream();
    (void)runner_.run_once();
    first_ = store_.last_sequence().value();
    runner_.on_tick([this, position = first_](const RunnerTick& tick) mutable {
      for (std::int64_t i = 0; i < tick.scanned; ++i) seen_->projected.note(++position);
    });
    // Handled is what is committed: the tick comes after that.
    consumer_.on<Subscribed>([this](Transaction&, const Recorded<Subscribed>& e) {
      handled_.push_back(e.sequence().value());
    });
    consumer_.on_tick([this](const nats::ConsumerTick&) {
      for (const std::int64_t sequence : handled_) seen_->handled.note(sequence);
      handled_.clear();
    });
    for (const auto& part : {Part{[this](std::stop_token stop) { relay_.run(stop); }},
                             Part{[this](std::stop_token stop) { runner_.run(stop); }},
                             Part{[this](std::stop_token stop) { consumer_.run(stop); }}}) {
      threads_.emplace_back(part);
    }
  }

  void set_callers(std::size_t count) {
    callers_.clear();
    projected_ms.clear();
    handled_ms.clear();
    for (std::size_t i = 0; i < count; ++i) {
      callers_.push_back(std::make_unique<Reserving>(store_, school_, i + 1, seen_->committed));
    }
  }

  /// A slice, after which everything is brought to where it belongs.
  double run(milliseconds slice) {
    const std::int64_t from = store_.last_sequence().value() + 1;
    const double rate = at_once(callers_)(slice);
    const std::int64_t to = store_.last_sequence().value();
    const bool arrived = test::eventually(
        [&] { return has_all(seen_->projected, from, to) && has_all(seen_->handled, from, to); },
        std::chrono::minutes{1});
    if (!arrived) throw std::runtime_error{"a projection or a consumer is a minute behind"};
    projected_ms.push_back(staleness(seen_->projected, from, to));
    handled_ms.push_back(staleness(seen_->handled, from, to));
    return rate;
  }

  /// The p99 of each slice.
  std::vector<double> projected_ms;
  std::vector<double> handled_ms;

 private:
  using Part = std::function<void(std::stop_token)>;

  static bool has_all(const Arrivals& arrivals, std::int64_t from, std::int64_t to) {
    while (to >= from && arrivals.at(to) > 0) --to;
    return to < from;
  }

  double staleness(const Arrivals& arrivals, std::int64_t from, std::int64_t to) const {
    std::vector<std::uint64_t> waits;
    for (std::int64_t i = from; i <= to; ++i) {
      const std::int64_t wait = arrivals.at(i) - seen_->committed.at(i);
      waits.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(wait, 0)));
    }
    return round_of(std::move(waits)).p99 / 1e6;
  }

  const School& school_;
  const std::unique_ptr<Seen> seen_ = std::make_unique<Seen>();
  const test::NatsServer broker_;
  Store store_;
  Outbox outbox_{store_};
  nats::Publisher publisher_;
  Relay relay_{outbox_, publisher_};
  Projections projections_{store_};
  /// Drives what is registered when it is made.
  Runner runner_{with_seats_taken(projections_)};
  nats::Consumer consumer_{store_, {.url = broker_.url(), .name = "confirmations"}};
  std::int64_t first_ = 0;
  /// Of the consumer's thread.
  std::vector<std::int64_t> handled_;
  Subjects callers_;
  std::vector<std::jthread> threads_;
};

void add_staleness(Bench& bench, std::string name, const char* what, std::vector<double> postgres,
                   std::vector<double> sqlite) {
  // The slice that isn't counted.
  postgres.erase(postgres.begin());
  sqlite.erase(sqlite.begin());
  add_rates(bench,
            {.name = std::move(name),
             .what = what,
             .mode = "full",
             .place = Place::disk,
             .unit = "ms",
             .goal = limit(50)},
            postgres, sqlite);
}

void measure_shop(Bench& bench, BusySchool& postgres, BusySchool& sqlite, std::size_t callers) {
  const std::string of = "." + std::to_string(callers);
  postgres.set_callers(callers);
  sqlite.set_callers(callers);
  const std::array<Way, 2> ways{[&](milliseconds slice) { return postgres.run(slice); },
                                [&](milliseconds slice) { return sqlite.run(slice); }};
  const Rates rates = compete(bench, ways, milliseconds{bench.sized(50, 1000, 2000)});
  add_rates(bench,
            {.name = "shop.reservations" + of,
             .what = std::to_string(callers) +
                     " callers reserve seats, beside a relay, a runner and a consumer of the same "
                     "store, on PostgreSQL, against SQLite",
             .mode = "full",
             .place = Place::disk,
             .unit = "decisions/s",
             .goal = at_least(1.0 / 3)},
            rates[0], rates[1]);
  add_staleness(bench, "shop.projected" + of,
                "p99 from the return of a decision until the read model has it",
                postgres.projected_ms, sqlite.projected_ms);
  add_staleness(bench, "shop.handled" + of,
                "p99 from the return of a decision until the consumer has handled its message",
                postgres.handled_ms, sqlite.handled_ms);
}

}  // namespace

void postgres_shop_figures(Bench& bench) {
  if (!bench.begins("shop")) return;
  const test::PostgresServer server{postgres_server_options};
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const School school{bench.sized<std::int64_t>(1'000, 20'000, 50'000)};
  {
    // Nobody is told what there was before.
    Store in_postgres = postgres::open(server.url());
    Store in_sqlite = sqlite::open(path);
    fill_school(in_postgres, school);
    fill_school(in_sqlite, school);
  }
  RawPostgres{server.url()}.execute("VACUUM ANALYZE");
  BusySchool on_postgres{postgres::open(server.url(), {.publishes = publish_all}), school};
  BusySchool on_sqlite{sqlite::open(path, {.publishes = publish_all}), school};
  for (const std::size_t callers : {8, 64}) measure_shop(bench, on_postgres, on_sqlite, callers);
}

}  // namespace stela::bench
