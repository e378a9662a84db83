// Measuring several ways of doing the same thing side by side.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stela::bench {

/// One way of doing what is measured.
class Subject {
 public:
  virtual ~Subject() = default;
  /// What belongs before an operation and isn't measured.
  virtual void prepare() {}
  /// One operation.
  virtual void run() = 0;
};

/// The middle of some values, and how far they spread.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
Spread spread_of(std::vector<double> values);

/// One subject's operations in one round, in nanoseconds.
struct Round {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
};
Round round_of(std::vector<std::uint64_t> nanoseconds);

/// What one subject came to, round by round.
using Rounds = std::vector<Round>;

Spread means_of(const Rounds& rounds);
Spread p50s_of(const Rounds& rounds);
Spread p99s_of(const Rounds& rounds);

/// By how much `subject` was faster than `baseline`, round against round.
Spread speed_ratio(const Rounds& subject, const Rounds& baseline);
/// A percentile of `subject` over that of `baseline`, round against round.
Spread p50_ratio(const Rounds& subject, const Rounds& baseline);
Spread p99_ratio(const Rounds& subject, const Rounds& baseline);

struct Turns {
  int rounds = 5;
  /// Operations of each subject in a round, done in slices that take turns: what the machine does
  /// meanwhile hits all of them alike.
  int operations = 1000;
  int slices = 10;
  /// Operations of each subject that nobody counts.
  int warm_up = 100;
};

/// Measures the subjects in turns; the result is in their order.
std::vector<Rounds> take_turns(std::span<Subject* const> subjects, const Turns& turns);

/// Seconds that `work` takes.
template <class Work>
double seconds(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Lets the time pass: for a load that keeps a pace by deadlines, and while somebody is measured
/// who has nothing to do. Where there is something to wait for, wait for that.
void pass_until(std::chrono::steady_clock::time_point deadline);

/// Random numbers that are the same in every run, and cost next to nothing.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_{seed} {}

  std::uint64_t next() noexcept {
    // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t limit) noexcept { return next() % limit; }

 private:
  std::uint64_t state_;
};

}  // namespace stela::bench
