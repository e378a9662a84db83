// How soon a relay that sleeps has what was committed, and what its sleep costs.
#include "appends.hpp"
#include "bench.hpp"
#include "raw_relay.hpp"
#include "support/process.hpp"

#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <stdexcept>
#include <thread>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

std::int64_t now_ns() {
  // The same clock in every process.
  return std::chrono::nanoseconds{steady_clock::now().time_since_epoch()}.count();
}

/// What a relay had last, and since when; perhaps in another process.
struct Sighting {
  std::atomic<std::int64_t> sequence{0};
  std::atomic<std::int64_t> at{0};
  std::atomic<bool> stopped{false};
  sem_t seen{};

  Sighting() {
    if (sem_init(&seen, 1, 0) != 0) throw std::runtime_error{"no semaphore"};
  }
  void see(std::int64_t last) noexcept {
    at.store(now_ns(), std::memory_order_relaxed);
    sequence.store(last, std::memory_order_release);
    sem_post(&seen);
  }
};

class SeeingPublisher final : public MemoryPublisher {
 public:
  explicit SeeingPublisher(Sighting& sighting) noexcept : sighting_{sighting} {}

  void publish(const OutgoingMessage& message) override {
    sighting_.see(message.event.sequence.value());
    MemoryPublisher::publish(message);
  }

 private:
  Sighting& sighting_;
};

/// A relay on a thread of this process, in the store that is appended to.
class RelayThread {
 public:
  RelayThread(Outbox& outbox, Sighting& sighting)
      : publisher_{sighting}, relay_{outbox, publisher_}, thread_{[this](std::stop_token stop) {
          relay_.run(stop);
        }} {}

  clockid_t clock() {
    clockid_t clock{};
    if (pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) {
      throw std::runtime_error{"a thread has no clock"};
    }
    return clock;
  }

 private:
  SeeingPublisher publisher_;
  Relay relay_;
  std::jthread thread_;
};

/// What a process of its own does: relays until it is killed.
void relay_for_ever(const std::string& path, Sighting& sighting) {
  auto store = sqlite::open(path);
  Outbox outbox{store};
  SeeingPublisher publisher{sighting};
  Relay relay{outbox, publisher};
  relay.run({});
}

/// A bare loop that looks after each `wait`, until it is told to stop.
void follow(const std::string& path, Sighting& sighting, const std::function<void()>& wait) {
  RawRelay relay{path, {}, 100};
  while (!sighting.stopped) {
    wait();
    const std::int64_t last = relay.publish_batch();
    if (last == 0) continue;
    sighting.see(last);
    relay.mark();
  }
}

/// The same without wake-ups: asks each millisecond whether anybody has committed.
void poll_for_ever(const std::string& path, Sighting& sighting) {
  RawDatabase database{path, {}};
  RawStatement version{database, "PRAGMA data_version"};
  std::int64_t seen = -1;
  // The pace is what is compared: a look each millisecond, and at once when one is late.
  auto due = steady_clock::now();
  follow(path, sighting, [&] {
    for (;;) {
      version.step();
      const std::int64_t found = version.integer(0);
      version.reset();
      if (std::exchange(seen, found) != found || sighting.stopped) return;
      pass_until(due = std::max(due + 1ms, steady_clock::now()));
    }
  });
}

/// Waits until somebody has `sequence`.
void await(Sighting& sighting, std::int64_t sequence) {
  timespec limit{};
  clock_gettime(CLOCK_MONOTONIC, &limit);
  limit.tv_sec += 60;
  while (sighting.sequence.load(std::memory_order_acquire) < sequence) {
    if (sem_clockwait(&sighting.seen, CLOCK_MONOTONIC, &limit) != 0 && errno != EINTR) {
      throw std::runtime_error{"nobody relays"};
    }
  }
}

struct Waits {
  std::vector<double> p50s;
  std::vector<double> p99s;
};

/// Appends now and then, with time between to fall asleep; ms from the return of each append until
/// somebody has its event. `wake` tells those who must be told.
Waits measure_waits(
    Bench& bench, EventStore& store, Sighting& sighting,
    const std::function<void()>& wake = [] {}) {
  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = bench.sized<std::size_t>(100, 1'000, 1'000)};
  const ContextScope scope{sample_context()};
  StoreAppend append{store, load};
  const auto one = [&] {
    append.prepare();
    append.run();
    const std::int64_t appended = now_ns();
    const auto due = steady_clock::now() + 2ms;
    wake();
    await(sighting, store.last_sequence().value());
    // The pace of the load: whoever relays has fallen asleep before the next append.
    pass_until(due);
    const std::int64_t taken = sighting.at.load(std::memory_order_relaxed) - appended;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(taken, 0));
  };
  one();
  Waits waits;
  for (int round = 0; round < bench.rounds(9); ++round) {
    std::vector<std::uint64_t> taken;
    for (int i = 0; i < bench.sized(20, 300, 1'000); ++i) taken.push_back(one());
    const Round all = round_of(std::move(taken));
    waits.p50s.push_back(all.p50 / 1e6);
    waits.p99s.push_back(all.p99 / 1e6);
  }
  return waits;
}

void add_waits(Bench& bench, Figure figure, const Waits& stela, const Waits& raw, double goal) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < stela.p99s.size(); ++i) {
    ratios.push_back(stela.p99s[i] / raw.p99s[i]);
  }
  figure.mode = "full";
  figure.unit = "ms";
  figure.stela = spread_of(stela.p99s).median;
  figure.raw = spread_of(raw.p99s).median;
  figure.ratio = spread_of(ratios);
  figure.goal = limit(goal);
  figure.more = {{"p50_ms", spread_of(stela.p50s).median},
                 {"raw_p50_ms", spread_of(raw.p50s).median},
                 {"p99_ms_min", spread_of(stela.p99s).min},
                 {"p99_ms_max", spread_of(stela.p99s).max}};
  bench.report().add(std::move(figure));
}

std::string make_database(const Bench& bench, const Folder& folder, const char* file) {
  make_shop(folder.file(file), {.durability = sqlite::Durability::full,
                                .streams = bench.sized<std::size_t>(100, 1'000, 1'000)});
  return folder.file(file);
}

void measure_same_process(Bench& bench) {
  const std::string name = "wake.same_process";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  Waits stela, raw;
  {
    Shop shop{make_database(bench, folder, "stela.db"), sqlite::Durability::full};
    Sighting sighting;
    RelayThread relay{shop.outbox, sighting};
    stela = measure_waits(bench, shop.store, sighting);
  }
  {
    const std::string path = make_database(bench, folder, "raw.db");
    Shop shop{path, sqlite::Durability::full};
    Sighting sighting;
    const int event = eventfd(0, EFD_CLOEXEC);
    const auto wake = [&] { eventfd_write(event, 1); };
    std::thread following{[&] {
      follow(path, sighting, [&] {
        eventfd_t ignored = 0;
        eventfd_read(event, &ignored);
      });
    }};
    raw = measure_waits(bench, shop.store, sighting, wake);
    sighting.stopped = true;
    wake();
    following.join();
    close(event);
  }
  add_waits(bench,
            {.name = name,
             .what = "p99 from the return of an append until the relay hands its event to the "
                     "publisher, against a bare thread that is woken"},
            stela, raw, 0.2);
}

void measure_other_process(Bench& bench) {
  const std::string name = "wake.other_process";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const auto measure = [&](const char* file, const auto& follower) {
    const std::string path = make_database(bench, folder, file);
    test::Shared<Sighting> sighting;
    const test::Process process{[&] { follower(path, *sighting); }};
    Shop shop{path, sqlite::Durability::full};
    return measure_waits(bench, shop.store, *sighting);
  };
  const Waits stela = measure("stela.db", relay_for_ever);
  const Waits raw = measure("raw.db", poll_for_ever);
  add_waits(bench,
            {.name = name,
             .what = "the same with the relay in another process, against one that polls each ms"},
            stela, raw, 5);
}

/// Per cent of a core that `clock` ran on.
double load_of(Bench& bench, clockid_t clock) {
  const auto read = [&] {
    timespec time{};
    if (clock_gettime(clock, &time) != 0) throw std::runtime_error{"a clock can't be read"};
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double before = read();
  const std::chrono::milliseconds length{bench.sized(50, 2000, 5000)};
  const double taken = seconds([&] { pass_until(steady_clock::now() + length); });
  return 100 * (read() - before) / taken;
}

clockid_t clock_of(const test::Process& process) {
  clockid_t clock{};
  if (clock_getcpuclockid(process.id(), &clock) != 0) {
    throw std::runtime_error{"a process has no clock"};
  }
  return clock;
}

void add_load(Bench& bench, const std::string& name, const char* what,
              const std::vector<double>& stela, const std::vector<double>& raw) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < stela.size(); ++i) ratios.push_back(stela[i] / raw[i]);
  bench.report().add({.name = name,
                      .what = what,
                      .mode = "full",
                      .place = Place::disk,
                      .unit = "%",
                      .stela = spread_of(stela).median,
                      .raw = spread_of(raw).median,
                      .ratio = spread_of(ratios),
                      .goal = limit(0.5)});
}

/// What an idle relay costs, with a bare loop beside it that polls each millisecond.
void measure_idle(Bench& bench) {
  if (!bench.begins("idle")) return;
  const Folder folder{bench.places().disk};
  const std::string raw_path = make_database(bench, folder, "raw.db");
  const std::string other_path = make_database(bench, folder, "other.db");
  test::Shared<Sighting> polled;
  test::Shared<Sighting> relayed;
  const test::Process polling{[&] { poll_for_ever(raw_path, *polled); }};
  const test::Process relaying{[&] { relay_for_ever(other_path, *relayed); }};

  Shop other{other_path, sqlite::Durability::full};
  Shop own{make_database(bench, folder, "own.db"), sqlite::Durability::full};
  Sighting sighting;
  RelayThread relay{own.outbox, sighting};
  const Samples samples{Codec::json};
  // Each has relayed something before it has nothing more to do.
  for (Shop* const shop : {&own, &other}) {
    StoreAppend append{shop->store, {.samples = samples, .streams = 10}};
    append.prepare();
    append.run();
  }
  await(sighting, own.store.last_sequence().value());
  await(*relayed, other.store.last_sequence().value());

  std::vector<double> in_process, of_process, raw;
  for (int round = 0; round < bench.rounds(3); ++round) {
    in_process.push_back(load_of(bench, relay.clock()));
    of_process.push_back(load_of(bench, clock_of(relaying)));
    raw.push_back(load_of(bench, clock_of(polling)));
  }
  add_load(bench, "idle.same_process",
           "of a core, for a relay that sleeps, against a bare loop that polls each ms", in_process,
           raw);
  add_load(bench, "idle.other_process",
           "the same for a relay in a process of its own, with another that could commit",
           of_process, raw);
}

}  // namespace

void wake_figures(Bench& bench) {
  measure_same_process(bench);
  measure_other_process(bench);
  measure_idle(bench);
}

}  // namespace stela::bench
