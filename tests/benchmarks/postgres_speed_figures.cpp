// What PostgreSQL's flush costs, by its length: appends, decisions and projections against bare
// libpq, the best lock that is held through the flush, and what users pick instead of Stela.
#include "contest.hpp"
#include "decisions.hpp"
#include "flushing_server.hpp"
#include "postgres_shop.hpp"
#include "raw_postgres_decisions.hpp"
#include "rivals.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/asio.hpp>
#include <stela/projections.hpp>

#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace stela::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A goal for each length of a flush: 0.1, 1 and 5 ms; 0: none.
using Goals = std::array<double, 3>;

std::optional<Goal> goal_of(const Goals& goals, std::size_t flush) {
  if (goals.at(flush) == 0) return std::nullopt;
  return at_least(goals.at(flush));
}

Figure on_flushing_server(std::string name, std::string what, std::optional<Goal> goal) {
  return {.name = std::move(name),
          .what = std::move(what),
          .mode = "full",
          .place = Place::tmpfs,
          .goal = goal};
}

/// Stores of one schema, as of so many processes.
class Stores {
 public:
  Stores(const std::string& url, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) shops_.push_back(std::make_unique<PostgresShop>(url));
  }

  /// Dealt out to the stores, each with a stream of its own.
  Subjects callers(const Samples& samples, std::size_t count, std::size_t events = 1) const {
    Subjects subjects;
    for (std::size_t i = 0; i < count; ++i) {
      Store& store = shops_[i % shops_.size()]->store;
      subjects.push_back(std::make_unique<PostgresAppend>(store, samples, 1000 + i, events));
    }
    return subjects;
  }

 private:
  std::vector<std::unique_ptr<PostgresShop>> shops_;
};

/// With connections of their own. Streams of different orders don't meet.
Subjects bare_callers(const std::string& url, RawOrder order, const Samples& samples,
                      std::size_t count, std::size_t events = 1) {
  Subjects subjects;
  for (std::size_t i = 0; i < count; ++i) {
    const auto stream = static_cast<std::int64_t>(static_cast<std::size_t>(order) * 1000 + i);
    subjects.push_back(
        std::make_unique<RawPostgresAppend>(url, order, stream, payloads_of(samples, events)));
  }
  return subjects;
}

// --- appends

struct AppendRow {
  std::string name = {};
  const char* what = "";
  std::size_t stores = 1;
  std::size_t callers = 1;
  std::size_t events = 1;
  std::optional<Goal> goal = {};
};

void measure_appends_of(Bench& bench, const FlushingServer& flushing, const std::string& url,
                        const AppendRow& row) {
  const std::string name = row.name + '.' + flushing.name();
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  make_raw_postgres(flushing.url());
  const Stores stores{url, row.stores};
  const Subjects ours = stores.callers(samples, row.callers, row.events);
  const Subjects bare = bare_callers(url, RawOrder::none, samples, row.callers, row.events);
  const std::array<Way, 2> ways{at_once(ours), at_once(bare)};
  const Rates rates = compete(bench, ways);
  Figure figure = on_flushing_server(name, row.what, row.goal);
  figure.more = {{"flush_us", static_cast<double>(flushing.taken().count())}};
  add_rates(bench, std::move(figure), rates[0], rates[1], static_cast<double>(row.events));
}

void measure_line(Bench& bench, const FlushingServer& flushing) {
  if (!bench.begins("speed.line")) return;
  test::TcpProxy line{flushing.server().port()};
  line.delay(test::TcpProxy::Direction::answers, milliseconds{1});
  const std::string far =
      "host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string(line.port());
  measure_appends_of(bench, flushing, far,
                     {.name = "speed.line.append.1",
                      .what = "an event by one caller, with 1 ms of a round trip to the server",
                      .goal = at_least(0.8)});
  measure_appends_of(bench, flushing, far,
                     {.name = "speed.line.group_commit.64",
                      .what = "64 threads of a store, with 1 ms of a round trip to the server",
                      .callers = 64,
                      .goal = at_least(1.5)});
}

/// Eight processes with one connection each: Stela's, the locks, and the rivals, all in turns.
void measure_eight(Bench& bench, const FlushingServer& flushing, std::size_t flush) {
  if (!bench.begins("speed.stores.8x1") && !bench.begins("rivals")) return;
  constexpr std::size_t callers = 8;
  const std::string url = flushing.url();
  const Samples samples{Codec::json};
  make_raw_postgres(url);
  // The rows that it numbers are in one table with those of the sequence.
  RawPostgres{url}.execute("UPDATE bare.counter SET n = 1000000000");
  make_rivals(url);
  const Stores stores{url, callers};
  std::vector<Subjects> subjects;
  subjects.push_back(stores.callers(samples, callers));
  constexpr std::array locks{RawOrder::table_lock, RawOrder::advisory_lock, RawOrder::counter_row};
  for (const RawOrder order : locks) {
    subjects.push_back(bare_callers(url, order, samples, callers));
  }
  struct Row {
    Rival rival;
    const char* name;
    const char* order;
    Goals goals;
  };
  constexpr Goals ordered{1, 3, 3};
  constexpr std::array rows{
      Row{Rival::category_lock, "message_db", "an advisory lock for each category", ordered},
      Row{Rival::table_lock, "pyeventsourcing", "a table lock", ordered},
      Row{Rival::all_stream_row, "commanded", "the row of $all, with a notification", ordered},
      Row{Rival::unordered, "marten_quick", "a sequence, without an order", {}}};
  for (const Row& row : rows) {
    Subjects& rivals = subjects.emplace_back();
    for (std::size_t i = 0; i < callers; ++i) {
      rivals.push_back(std::make_unique<RivalAppend>(url, row.rival, static_cast<std::int64_t>(i),
                                                     payloads_of(samples, 1).front()));
    }
  }
  std::vector<Way> ways;
  for (const Subjects& callers_of_one : subjects) ways.push_back(at_once(callers_of_one));
  const Rates rates = compete(bench, ways);
  add_rates(bench,
            on_flushing_server("speed.stores.8x1." + flushing.name(),
                               "8 processes with a thread each, against the best of a table lock, "
                               "an advisory lock and a counter row held through the flush",
                               goal_of({1, 3.5, 3.5}, flush)),
            rates[0], best_from(rates, 1, locks.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add_rates(bench,
              on_flushing_server(std::string{"rivals."} + rows[i].name + '.' + flushing.name(),
                                 std::string{"the same 8 processes, against "} + rows[i].order,
                                 goal_of(rows[i].goals, flush)),
              rates[0], rates[1 + locks.size() + i]);
  }
}

// --- beside a runner

class Quantities {
 public:
  static constexpr ProjectorType projector_type{"quantities", 1};
  using Events = EventSet<LineAdded, LineDropped>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {quantities} (product TEXT PRIMARY KEY, quantity BIGINT)");
  }
  void project(ReadModel& model, const Recorded<LineAdded>& e) {
    model.execute(sql_, e->product, e->quantity);
  }
  void project(ReadModel& model, const Recorded<LineDropped>& e) {
    model.execute(sql_, e->product, -e->quantity);
  }

 private:
  std::string sql_ =
      "INSERT INTO {quantities} AS q VALUES (?1, ?2) ON CONFLICT (product) DO UPDATE "
      "SET quantity = q.quantity + excluded.quantity";
};

void measure_beside_runner(Bench& bench, const FlushingServer& flushing) {
  const std::string name = "speed.append.64.beside_runner." + flushing.name();
  if (!bench.begins(name)) return;
  const std::string url = flushing.url();
  const Samples samples{Codec::json};
  PostgresShop shop{url, {.schema = "behind"}};
  {
    const ContextScope scope{sample_context()};
    PostgresAppend append{shop.store, samples, 1, 100};
    for (int i = 0; i < bench.sized(30, 600, 1500); ++i) append.run();
  }
  Projections projections{shop.store};
  projections.add(Quantities{});
  Runner runner{projections};
  std::int64_t scanned = 0;
  runner.on_tick([&](const RunnerTick& tick) { scanned += tick.scanned; });
  Subjects callers;
  for (std::size_t i = 0; i < 64; ++i) {
    callers.push_back(std::make_unique<PostgresAppend>(shop.store, samples, 1000 + i, 1));
  }
  const Way alone = at_once(callers);
  const Way beside = [&](milliseconds slice) {
    const std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};
    return alone(slice);
  };
  const std::array<Way, 2> ways{beside, alone};
  const Rates rates = compete(bench, ways);
  const std::int64_t events = shop.store.last_sequence().value();
  if (scanned == 0 || scanned >= events) throw std::logic_error{"the runner wasn't behind"};
  Figure figure = on_flushing_server(
      name, "64 threads of a store, beside a runner that is behind, against the same alone",
      at_least(0.8));
  figure.more = {{"scanned", static_cast<double>(scanned)},
                 {"events", static_cast<double>(events)}};
  add_rates(bench, std::move(figure), rates[0], rates[1]);
}

// --- decisions

/// Courses and students of the caller's own, which nobody else decides about.
std::vector<School> parts_of(const School& school, std::size_t count) {
  std::vector<School> parts(count, School{0});
  const auto deal = [&](const auto& all, auto member) {
    for (School& part : parts) (part.*member).clear();
    for (std::size_t i = 0; i < all.size(); ++i) (parts[i % count].*member).push_back(all[i]);
  };
  deal(school.courses, &School::courses);
  deal(school.students, &School::students);
  return parts;
}

class Deciders {
 public:
  explicit Deciders(Bench& bench, microseconds flush)
      : flushing_{flush},
        store_{postgres::open(flushing_.url())},
        school_{bench.sized<std::int64_t>(2'000, 20'000, 50'000)} {
    fill_school(store_, school_);
    RawPostgres{flushing_.url()}.execute("VACUUM ANALYZE");
    copy_school_to_raw_postgres(flushing_.url());
    parts_ = parts_of(school_, 64);
    check_same();
  }

  const std::string& flush() const noexcept { return flushing_.name(); }
  Subjects ours(std::size_t threads) {
    Subjects subjects;
    for (std::size_t i = 0; i < threads; ++i) {
      subjects.push_back(std::make_unique<Subscribing>(store_, parts_[i]));
    }
    return subjects;
  }
  Subjects bare(std::size_t threads) {
    Subjects subjects;
    for (std::size_t i = 0; i < threads; ++i) {
      subjects.push_back(std::make_unique<RawPostgresSubscribing>(flushing_.url(), parts_[i]));
    }
    return subjects;
  }

 private:
  void check_same() {
    const ContextScope scope{sample_context()};
    Subscribing ours{store_, parts_[0]};
    RawPostgresSubscribing bare{flushing_.url(), parts_[0]};
    for (int i = 0; i < 10; ++i) {
      ours.prepare(), ours.run();
      bare.prepare(), bare.run();
    }
    if (ours.seen != bare.seen) throw std::logic_error{"the two loops saw different events"};
  }

  const FlushingServer flushing_;
  Store store_;
  const School school_;
  std::vector<School> parts_;
};

void measure_decisions(Bench& bench, microseconds flush) {
  if (!bench.begins("speed.decision")) return;
  Deciders deciders{bench, flush};
  const auto measure = [&](const std::string& name, const std::string& what, const Subjects& these,
                           const Subjects& those, double goal) {
    const std::array<Way, 2> ways{at_once(these), at_once(those)};
    const Rates rates = compete(bench, ways);
    Figure figure = on_flushing_server(name, what, at_least(goal));
    figure.unit = "decisions/s";
    add_rates(bench, std::move(figure), rates[0], rates[1]);
  };
  for (const std::size_t threads : {1, 8, 64}) {
    measure("speed.decision.two_views." + std::to_string(threads) + '.' + deciders.flush(),
            std::to_string(threads) +
                " threads, each with tags of its own, against bare loops of "
                "three round trips: the views, the append, the flush",
            deciders.ours(threads), deciders.bare(threads), 0.7);
  }
  if (flush != milliseconds{1}) return;
  measure("speed.decision.64_to_8." + deciders.flush(),
          "the same decisions of 64 threads, against those of 8", deciders.ours(64),
          deciders.ours(8), 2);
}

// --- without a thread for each

/// Appends that are under way at once: each that is answered is followed by the next one of its
/// stream.
class InFlight {
 public:
  InFlight(Store& store, const Samples& samples, std::size_t count)
      // An append is under way until its answer was given, when the next one has begun.
      : event_{samples.some(0, 1)}, async_{store, threads_, {.in_flight = 2 * count}} {
    for (std::size_t i = 0; i < count; ++i) slots_.push_back({basket_id(5000 + i).stream(), {}});
  }

  double run(milliseconds slice) {
    done_ = 0;
    left_ = slots_.size();
    const double taken = seconds([&] {
      deadline_ = std::chrono::steady_clock::now() + slice;
      for (Slot& slot : slots_) append(slot);
      for (std::size_t left = left_; left > 0; left = left_) left_.wait(left);
    });
    const std::lock_guard lock{mutex_};
    if (problem_) std::rethrow_exception(problem_);
    return static_cast<double>(done_.load()) / taken;
  }

 private:
  struct Slot {
    StreamId stream;
    StreamVersion version;
  };

  void append(Slot& slot) {
    const StreamAppend append{slot.stream, ExpectedVersion::exactly(slot.version), event_};
    async_.append({.streams = {&append, 1}, .context = context_},
                  [this, &slot](std::exception_ptr error, const AppendResult& result) {
                    answer(slot, error, result);
                  });
  }
  void answer(Slot& slot, const std::exception_ptr& error, const AppendResult& result) {
    if (error) {
      const std::lock_guard lock{mutex_};
      problem_ = error;
    } else {
      slot.version = result.versions.front();
      ++done_;
      if (std::chrono::steady_clock::now() < deadline_) return append(slot);
    }
    if (--left_ == 0) left_.notify_all();
  }

  const std::span<const NewEvent> event_;
  const Context context_ = sample_context();
  std::vector<Slot> slots_;
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<std::int64_t> done_{0};
  std::atomic<std::size_t> left_{0};
  std::mutex mutex_;
  std::exception_ptr problem_;
  boost::asio::thread_pool threads_{4};
  Async async_;
};

void measure_async(Bench& bench, Store& store, Figure figure) {
  const Samples samples{Codec::json};
  constexpr std::size_t count = 1024;
  InFlight in_flight{store, samples, count};
  Subjects callers;
  for (std::size_t i = 0; i < 64; ++i) {
    callers.push_back(std::make_unique<PostgresAppend>(store, samples, 1000 + i, 1));
  }
  const std::array<Way, 2> ways{[&](milliseconds slice) { return in_flight.run(slice); },
                                at_once(callers)};
  const Rates rates = compete(bench, ways);
  figure.what =
      "1,024 appends under way on an executor with 4 threads, against 64 threads that block";
  add_rates(bench, std::move(figure), rates[0], rates[1]);
}

void measure_asyncs(Bench& bench, const FlushingServer& flushing) {
  if (const auto name = "speed.async.postgres." + flushing.name(); bench.begins(name)) {
    PostgresShop shop{flushing.url(), {.schema = "async"}};
    measure_async(bench, shop.store, on_flushing_server(name, "", std::nullopt));
  }
  if (flushing.name() != "100us") return;
  if (const char* const name = "speed.async.sqlite"; bench.begins(name)) {
    const Folder folder{bench.places().disk};
    Shop shop{folder.file("async.db"), sqlite::Durability::full};
    measure_async(bench, shop.store, {.name = name, .mode = "full", .place = Place::disk});
  }
}

}  // namespace

void postgres_speed_figures(Bench& bench) {
  if (!bench.begins("speed") && !bench.begins("rivals")) return;
  constexpr std::array<microseconds, 3> flushes{microseconds{100}, milliseconds{1},
                                                milliseconds{5}};
  for (std::size_t i = 0; i < bench.sized<std::size_t>(1, 3, 3); ++i) {
    const FlushingServer flushing{flushes.at(i)};
    const AppendRow rows[] = {
        {.name = "speed.append.1",
         .what = "an event by one caller, against bare libpq without an order",
         .goal = goal_of({0.55, 0, 0}, i)},
        {.name = "speed.append.100",
         .what = "100 events by one caller, against bare libpq without an order",
         .events = 100,
         .goal = goal_of({0.7, 0, 0}, i)},
        {.name = "speed.group_commit.64",
         .what = "64 threads of a store, against 64 bare connections without an order",
         .callers = 64,
         .goal = goal_of({1.4, 1.2, 1}, i)},
        {.name = "speed.group_commit.4x16",
         .what = "4 stores with 16 threads each, against 64 bare connections without an order",
         .stores = 4,
         .callers = 64,
         .goal = goal_of({1, 0, 0}, i)}};
    for (const AppendRow& row : rows) measure_appends_of(bench, flushing, flushing.url(), row);
    measure_eight(bench, flushing, i);
    if (i == 0) measure_line(bench, flushing);
    if (i < 2) measure_beside_runner(bench, flushing);
    if (i < 2) measure_asyncs(bench, flushing);
  }
  if (bench.settings().size != Settings::Size::tiny) measure_decisions(bench, microseconds{100});
  measure_decisions(bench, milliseconds{1});
}

}  // namespace stela::bench
