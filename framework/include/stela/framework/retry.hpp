// Runs work again after it lost a race.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/export.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace stela {

/// How often, how long and with which pauses to repeat work. The defaults suit many threads that
/// change one aggregate.
struct RetryOptions {
  /// The highest number of runs, including the first.
  int max_attempts = 100;
  /// No attempt begins later than this after the first one. A running attempt isn't interrupted.
  std::chrono::milliseconds deadline{30'000};
  /// Each pause is a random part of a limit, which doubles from the first to the longest. So
  /// threads that conflicted don't start again at the same time.
  std::chrono::milliseconds retry_backoff{2};
  std::chrono::milliseconds retry_backoff_max{200};
  /// Replaces the sleep between attempts: for tests, and for callers that must be able to stop. An
  /// exception from it ends the retrying.
  std::function<void(std::chrono::microseconds)> wait = {};
  /// The clock for the deadline. Must outlive the call.
  const Clock* clock = &system_clock();
};

namespace detail {

/// Counts the attempts of one call.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Retries {
 public:
  /// UsageError if an option is out of range.
  explicit Retries(const RetryOptions& options);

  /// True if the work should run again after this error. Chooses the pause.
  bool is_worthwhile(const Error& error);
  void pause() const;
  /// True if the next run is the last one.
  bool is_at_last() const noexcept { return attempts_ == options_.max_attempts; }

 private:
  /// True if this conflict repeats the previous one: the work doesn't load what it changes.
  bool is_last_conflict(const Error& error);
  bool is_last_condition(const Error& error);

  const RetryOptions& options_;
  const std::chrono::steady_clock::time_point end_;
  std::chrono::microseconds limit_;
  std::chrono::microseconds pause_{0};
  int attempts_ = 1;
  std::optional<ConcurrencyConflict> conflict_;
  std::optional<ConditionConflict> condition_;
};

}  // namespace detail

/// Runs `work`, and runs it again after a retryable Error (a ConcurrencyConflict, a busy store),
/// with growing pauses. `work` must load what it changes. When attempts or time are used up, the
/// last error is thrown. Other errors are thrown at once, CommitInDoubt among them. So is a
/// ConcurrencyConflict or ConditionConflict that is the same twice, because a retry can't solve it.
/// Inside a transaction every error is thrown at once, because a pause would block all writers:
/// retry around `transact` instead. Returns the result of `work`. UsageError if an option is out of
/// range.
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
