// What a replay costs where the history is ten times as long.
#include "bench.hpp"
#include "memory.hpp"
#include "raw_events.hpp"
#include "replays.hpp"

#include <array>
#include <iostream>

namespace stela::bench {
namespace {

constexpr std::size_t events_each = 50;

std::string make_history(const Folder& folder, const char* file, std::size_t events) {
  const std::string path = folder.file(file);
  make_shop(path, {.codec = Codec::portable_binary,
                   .streams = events / events_each,
                   .events_each = events_each});
  return path;
}

/// Replays all that a database holds, so many times in each operation.
class History final : public Subject {
 public:
  explicit History(const std::string& path, int times = 1)
      : store_{sqlite::open(path)}, times_{times} {
    projections_.add(InMemory{std::make_shared<ProductTotals>()});
  }

  void run() override {
    for (int i = 0; i < times_; ++i) replay_.run();
  }

 private:
  Store store_;
  Projections projections_{store_};
  Replay replay_{projections_, "in_memory"};
  int times_;
};

void measure_time(Bench& bench, const std::string& few, const std::string& many,
                  std::size_t events) {
  History large{many};
  History small{few, 10};
  const std::array<Subject*, 2> subjects{&large, &small};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(5), .operations = 1, .slices = 1, .warm_up = 1});
  const Spread speed = speed_ratio(rounds[0], rounds[1]);
  const auto each = [&](const Rounds& r) {
    return means_of(r).median / 1000 / static_cast<double>(events);
  };
  bench.report().add({.name = "replay.growth",
                      .what = "time for each event of a replay of " +
                              in_digits(static_cast<double>(events)) +
                              " events, against a tenth of them",
                      .mode = "read",
                      .place = Place::disk,
                      .unit = "µs",
                      .stela = each(rounds[0]),
                      .raw = each(rounds[1]),
                      .ratio = {1 / speed.median, 1 / speed.max, 1 / speed.min},
                      .goal = at_most(1.15)});
}

void measure_peak(Bench& bench, const std::string& path, std::size_t events) {
  const double stela = in_own_process("--measure-replay-memory '" + path + "' stela");
  const double raw = in_own_process("--measure-replay-memory '" + path + "' raw");
  bench.report().add({.name = "replay.growth.memory",
                      .what = "peak of memory over the start during a replay of " +
                              in_digits(static_cast<double>(events)) + " events",
                      .mode = "read",
                      .place = Place::disk,
                      .unit = "MiB",
                      .stela = stela,
                      .raw = raw,
                      .ratio = spread_of({stela / raw}),
                      .goal = limit(64)});
}

}  // namespace

int measure_replay_memory(const std::string& path, bool raw) {
  const double before = memory_kib("VmRSS");
  if (raw) {
    BareMap<RawReader, decltype(by_hand())>{path, by_hand()}.run();
  } else {
    History{path}.run();
  }
  std::cout << (memory_kib("VmHWM") - before) / 1024 << '\n';
  return 0;
}

void replay_growth_figures(Bench& bench) {
  if (!bench.begins("replay.growth")) return;
  const Folder folder{bench.places().disk};
  const std::size_t events = bench.sized<std::size_t>(10'000, 500'000, 5'000'000);
  const std::string few = make_history(folder, "few.db", events / 10);
  const std::string many = make_history(folder, "many.db", events);
  measure_time(bench, few, many, events);
  measure_peak(bench, many, events);
}

}  // namespace stela::bench
