#include "measure.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

namespace stela::bench {
namespace {

using std::chrono::steady_clock;

std::uint64_t nanoseconds_since(steady_clock::time_point begin) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds{steady_clock::now() - begin}.count());
}

void run_slice(Subject& subject, int operations, std::vector<std::uint64_t>& taken) {
  for (int i = 0; i < operations; ++i) {
    subject.prepare();
    const auto begin = steady_clock::now();
    subject.run();
    taken.push_back(nanoseconds_since(begin));
  }
}

Spread spread_over(const Rounds& rounds, double Round::*value) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(round.*value);
  return spread_of(std::move(values));
}

Spread ratio_of(const Rounds& over, const Rounds& under, double Round::*value) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) {
    ratios.push_back(over[i].*value / (under[i].*value));
  }
  return spread_of(std::move(ratios));
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Round round_of(std::vector<std::uint64_t> nanoseconds) {
  if (nanoseconds.empty()) return {};
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const double sum = std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0);
  const std::size_t count = nanoseconds.size();
  return {sum / static_cast<double>(count), static_cast<double>(nanoseconds[count / 2]),
          static_cast<double>(nanoseconds[count * 99 / 100])};
}

Spread means_of(const Rounds& rounds) {
  return spread_over(rounds, &Round::mean);
}
Spread p50s_of(const Rounds& rounds) {
  return spread_over(rounds, &Round::p50);
}
Spread p99s_of(const Rounds& rounds) {
  return spread_over(rounds, &Round::p99);
}

Spread speed_ratio(const Rounds& subject, const Rounds& baseline) {
  return ratio_of(baseline, subject, &Round::mean);
}

Spread p50_ratio(const Rounds& subject, const Rounds& baseline) {
  return ratio_of(subject, baseline, &Round::p50);
}

Spread p99_ratio(const Rounds& subject, const Rounds& baseline) {
  return ratio_of(subject, baseline, &Round::p99);
}

std::vector<Rounds> take_turns(std::span<Subject* const> subjects, const Turns& turns) {
  std::vector<std::uint64_t> ignored;
  for (Subject* const subject : subjects) run_slice(*subject, turns.warm_up, ignored);

  std::vector<Rounds> all(subjects.size());
  const int slice = std::max(turns.operations / std::max(turns.slices, 1), 1);
  for (int round = 0; round < turns.rounds; ++round) {
    std::vector<std::vector<std::uint64_t>> taken(subjects.size());
    for (int done = 0; done < turns.operations; done += slice) {
      // Who begins changes, so that nobody always runs behind the same one.
      const auto first = static_cast<std::size_t>(done / slice + round);
      for (std::size_t i = 0; i < subjects.size(); ++i) {
        const std::size_t turn = (first + i) % subjects.size();
        run_slice(*subjects[turn], slice, taken[turn]);
      }
    }
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      all[i].push_back(round_of(std::move(taken[i])));
    }
  }
  return all;
}

void pass_until(steady_clock::time_point deadline) {
  std::this_thread::sleep_until(deadline);
}

}  // namespace stela::bench
