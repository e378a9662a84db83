// Many callers who each need their own durable commit, and one who is alone.
#include "appends.hpp"
#include "bench.hpp"
#include "commit_queue.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>

namespace stela::bench {
namespace {

using Subjects = std::vector<std::unique_ptr<Subject>>;

/// Operations a second, all threads together: each thread runs its own subject for that long.
double rate_together(const Subjects& subjects, std::chrono::milliseconds length) {
  std::atomic<std::int64_t> done{0};
  std::vector<std::thread> threads;
  const double taken = seconds([&] {
    const auto deadline = std::chrono::steady_clock::now() + length;
    for (const auto& subject : subjects) {
      threads.emplace_back([&] {
        const ContextScope scope{sample_context()};
        std::int64_t own = 0;
        while (std::chrono::steady_clock::now() < deadline) {
          subject->prepare();
          subject->run();
          ++own;
        }
        done += own;
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  return static_cast<double>(done) / taken;
}

/// Another subject's operation, under a mutex that all threads share.
class UnderMutex final : public Subject {
 public:
  UnderMutex(std::unique_ptr<Subject> inner, std::mutex& mutex)
      : inner_{std::move(inner)}, mutex_{mutex} {}

  void prepare() override { inner_->prepare(); }
  void run() override {
    const std::lock_guard lock{mutex_};
    inner_->run();
  }

 private:
  std::unique_ptr<Subject> inner_;
  std::mutex& mutex_;
};

struct Threads {
  std::size_t count;
  const Samples& samples;
  std::size_t streams;

  /// One subject for each thread, each with streams of its own.
  template <class Make>
  Subjects each(Make&& make) const {
    Subjects subjects;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t own = streams / count;
      subjects.push_back(make(Load{.samples = samples, .streams = own, .first_stream = i * own}));
    }
    return subjects;
  }
};

void measure_threads(Bench& bench, std::size_t threads, double goal) {
  std::string name = "group_commit." + std::to_string(threads) + ".full.disk";
  if (!bench.begins(name)) return;
  constexpr auto full = sqlite::Durability::full;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(256, 10'000, 10'000);
  const auto shop = [&](const char* file) {
    make_shop(folder.file(file), {.durability = full, .streams = streams});
    return folder.file(file);
  };
  const Samples samples{Codec::json};
  const Threads each{threads, samples, streams};

  Shop grouped{shop("grouped.db"), full};
  Shop locked{shop("locked.db"), full};
  RawAppender raw{shop("raw.db"), {.full_sync = true}, streams};
  std::mutex mutex;
  const auto in_group = each.each(
      [&](const Load& load) { return std::make_unique<SaveBasket>(grouped.store, load); });
  const auto under_mutex = each.each([&](const Load& load) {
    return std::make_unique<UnderMutex>(std::make_unique<SaveBasket>(locked.store, load), mutex);
  });
  const auto bare = each.each([&](const Load& load) {
    return std::make_unique<UnderMutex>(std::make_unique<RawAppend>(raw, load), mutex);
  });

  const std::chrono::milliseconds length{bench.sized(30, 300, 500)};
  std::vector<double> ours, own_mutex, raw_mutex, over_own, over_raw;
  rate_together(in_group, length), rate_together(under_mutex, length), rate_together(bare, length);
  for (int round = 0; round < bench.rounds(15); ++round) {
    ours.push_back(rate_together(in_group, length));
    raw_mutex.push_back(rate_together(bare, length));
    own_mutex.push_back(rate_together(under_mutex, length));
    over_raw.push_back(ours.back() / raw_mutex.back());
    over_own.push_back(ours.back() / own_mutex.back());
  }
  const auto add = [&](const char* variant, const char* what, const std::vector<double>& theirs,
                       const std::vector<double>& ratio) {
    bench.report().add({.name = name + variant,
                        .what = std::to_string(threads) + " threads, each saves 1 event: " + what,
                        .mode = "full",
                        .place = Place::disk,
                        .stela = spread_of(ours).median,
                        .raw = spread_of(theirs).median,
                        .ratio = spread_of(ratio),
                        .goal = at_least(goal)});
  };
  add(".bare", "against bare statements under a mutex", raw_mutex, over_raw);
  add(".saves", "against the same saves under a mutex", own_mutex, over_own);
}

/// What it costs to go through the queue where nobody else is in line, in nanoseconds.
double turn_of_the_queue(int turns) {
  CommitQueue queue;
  std::size_t carried_out = 0;
  const double taken = seconds([&] {
    for (int i = 0; i < turns; ++i) {
      CommitQueue::Ticket ticket;
      queue.submit(ticket, [&](std::span<CommitQueue::Ticket* const> group) {
        carried_out += group.size();
      });
    }
  });
  if (carried_out != static_cast<std::size_t>(turns)) throw std::logic_error{"a turn is missing"};
  return taken * 1e9 / turns;
}

void measure_lone_caller(Bench& bench) {
  const std::string name = "lone_caller.full.disk";
  if (!bench.begins(name)) return;
  constexpr auto full = sqlite::Durability::full;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(100, 10'000, 10'000);
  for (const char* const file : {"save.db", "raw.db"}) {
    make_shop(folder.file(file), {.durability = full, .streams = streams});
  }
  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = streams};
  const ContextScope scope{sample_context()};
  Shop shop{folder.file("save.db"), full};
  RawAppender appender{folder.file("raw.db"), {.full_sync = true}, streams};
  SaveBasket save{shop.store, load};
  RawAppend raw{appender, load};
  const std::array<Subject*, 2> subjects{&save, &raw};
  const int operations = bench.sized(40, 1500, 3000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = operations});
  const Spread saves = p50s_of(rounds[0]);
  Figure figure{.name = name + ".bare",
                .what = "p50 of a save of 1 event by a caller who is alone, against a bare append",
                .mode = "full",
                .place = Place::disk,
                .unit = "µs",
                .stela = saves.median / 1000,
                .raw = p50s_of(rounds[1]).median / 1000,
                .ratio = p50_ratio(rounds[0], rounds[1]),
                .goal = at_most(1.05)};
  bench.report().add(figure);
  const double turn = turn_of_the_queue(bench.sized(1000, 1'000'000, 10'000'000));
  const auto over_direct = [turn](double taken) { return taken / (taken - turn); };
  figure.name = name + ".queue";
  figure.what = "p50 of the same save, against what it takes but for the queue of group commit";
  figure.raw = (saves.median - turn) / 1000;
  figure.ratio = {.median = over_direct(saves.median),
                  .min = over_direct(saves.max),
                  .max = over_direct(saves.min)};
  figure.more = {{"queue_ns", turn}};
  bench.report().add(std::move(figure));
}

}  // namespace

void group_commit_figures(Bench& bench) {
  measure_threads(bench, 16, 3.5);
  measure_threads(bench, 64, 5.5);
  measure_lone_caller(bench);
}

}  // namespace stela::bench
