// Several ways of doing the same, measured in turns by what they get done in a time.
#pragma once

#include "bench.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace stela::bench {

using Subjects = std::vector<std::unique_ptr<Subject>>;

/// Operations a second, while it goes on for that long.
using Way = std::function<double(std::chrono::milliseconds)>;
/// The callers, which must outlive it, each on a thread of its own. An exception of one is the
/// way's, after the others are done.
Way at_once(const Subjects& callers);

/// What each way came to, round by round.
using Rates = std::vector<std::vector<double>>;
/// In slices that take turns; who begins changes. A slice of each before that isn't counted.
Rates compete(const Bench& bench, std::span<const Way> ways,
              std::chrono::milliseconds slice = std::chrono::milliseconds{0});
/// The best of the ways from `first` on, round by round.
std::vector<double> best_from(const Rates& rates, std::size_t first, std::size_t count);

/// Adds the figure with its rates and their ratio, round against round.
void add_rates(Bench& bench, Figure figure, const std::vector<double>& ours,
               const std::vector<double>& theirs, double events = 1);

}  // namespace stela::bench
