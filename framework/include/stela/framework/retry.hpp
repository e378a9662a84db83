// Reruns work that lost a race.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/export.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <utility>

namespace stela {

/// How often, for how long and with what pauses work is repeated. The defaults are for many threads
/// that change one aggregate.
struct RetryOptions {
  /// How often the work runs at most, the first time included.
  int attempts = 100;
  /// No attempt begins later than this after the first one. It doesn't interrupt the work.
  std::chrono::milliseconds deadline{30'000};
  /// The pause before an attempt is a random part of a limit, which doubles from the first to the
  /// longest. Threads that lost to each other don't meet again.
  std::chrono::milliseconds first_pause{2};
  std::chrono::milliseconds longest_pause{200};
  /// Waits in the place of the thread's sleep: for tests, and for whoever must stop waiting. What
  /// it throws ends the retrying.
  std::function<void(std::chrono::microseconds)> wait = {};
  /// For the deadline. Must outlive the call.
  const Clock* clock = &system_clock();
};

namespace detail {

/// Counts the attempts of one call.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Retries {
 public:
  /// UsageError if an option is out of range.
  explicit Retries(const RetryOptions& options);

  /// Whether to repeat the work after this error; chooses the pause.
  bool is_worthwhile(const Error& error);
  void pause() const;

 private:
  /// True if the conflict before said the same: the work doesn't load what it changes.
  bool is_last_conflict(const Error& error);

  const RetryOptions& options_;
  const std::chrono::steady_clock::time_point end_;
  std::minstd_rand random_;
  std::chrono::microseconds limit_;
  std::chrono::microseconds pause_{0};
  int attempts_ = 1;
  std::optional<ConcurrencyConflict> conflict_;
};

}  // namespace detail

/// Runs `work`, and runs it again after an Error that is retryable (a ConcurrencyConflict, a busy
/// store), after a pause that grows. What it loads it must load inside. When attempts or time are
/// used up the last error is passed on; another error is at once, a CommitInDoubt among them, and
/// so is a ConcurrencyConflict that comes back the same: it stays, whatever is retried. Inside a
/// transaction every error is passed on at once, as a pause would hold up all writers: retry around
/// `transact`. Returns what `work` returns. UsageError if an option is out of range.
template <class Work>
decltype(auto) retry(const RetryOptions& options, Work&& work) {
  detail::Retries retries{options};
  for (;;) {
    try {
      return work();
    } catch (const Error& e) {
      if (!retries.is_worthwhile(e)) throw;
    }
    retries.pause();
  }
}

template <class Work>
decltype(auto) retry(Work&& work) {
  return retry(RetryOptions{}, std::forward<Work>(work));
}

}  // namespace stela
