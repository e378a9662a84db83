#include "contest.hpp"

#include "shop.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace stela::bench {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Way at_once(const Subjects& callers) {
  return [&callers](milliseconds slice) {
    std::atomic<std::int64_t> done{0};
    std::mutex mutex;
    std::exception_ptr problem;
    const auto call = [&](Subject& subject, steady_clock::time_point deadline) {
      const ContextScope scope{sample_context()};
      try {
        for (; steady_clock::now() < deadline; ++done) {
          subject.prepare();
          subject.run();
        }
      } catch (...) {
        const std::lock_guard lock{mutex};
        problem = std::current_exception();
      }
    };
    const double taken = seconds([&] {
      const auto deadline = steady_clock::now() + slice;
      std::vector<std::jthread> threads;
      for (const auto& caller : callers) {
        threads.emplace_back([&, deadline] { call(*caller, deadline); });
      }
    });
    if (problem) std::rethrow_exception(problem);
    return static_cast<double>(done) / taken;
  };
}

Rates compete(const Bench& bench, std::span<const Way> ways, milliseconds slice) {
  if (slice == milliseconds{0}) slice = milliseconds{bench.sized(30, 400, 1000)};
  for (const Way& way : ways) way(slice);
  Rates rates(ways.size());
  for (int round = 0; round < bench.rounds(9); ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t turn = (static_cast<std::size_t>(round) + i) % ways.size();
      rates[turn].push_back(ways[turn](slice));
    }
  }
  return rates;
}

std::vector<double> best_from(const Rates& rates, std::size_t first, std::size_t count) {
  std::vector<double> best = rates[first];
  for (std::size_t way = first + 1; way < first + count; ++way) {
    for (std::size_t round = 0; round < best.size(); ++round) {
      best[round] = std::max(best[round], rates[way][round]);
    }
  }
  return best;
}

void add_rates(Bench& bench, Figure figure, const std::vector<double>& ours,
               const std::vector<double>& theirs, double events) {
  std::vector<double> ratio;
  for (std::size_t i = 0; i < ours.size(); ++i) ratio.push_back(ours[i] / theirs[i]);
  figure.stela = events * spread_of(ours).median;
  figure.raw = events * spread_of(theirs).median;
  figure.ratio = spread_of(ratio);
  bench.report().add(std::move(figure));
}

}  // namespace stela::bench
