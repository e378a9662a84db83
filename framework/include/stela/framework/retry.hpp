// Reruns work that lost a race.
#pragma once

#include <stela/framework/error.hpp>

#include <utility>

namespace stela {

struct RetryOptions {
  /// How often the work runs at most, the first time included.
  int attempts = 3;
};

/// Runs `work`, and runs it again after an Error that is retryable (a ConcurrencyConflict, a busy
/// store). What it loads it must load inside. The last error is passed on; a CommitInDoubt always
/// is. Returns what `work` returns.
template <class Work>
decltype(auto) retry(const RetryOptions& options, Work&& work) {
  if (options.attempts < 1) throw UsageError{"retry needs 1 attempt or more"};
  for (int attempt = 1;; ++attempt) {
    try {
      return work();
    } catch (const Error& e) {
      if (!e.is_retryable() || attempt == options.attempts) throw;
    }
  }
}

template <class Work>
decltype(auto) retry(Work&& work) {
  return retry(RetryOptions{}, std::forward<Work>(work));
}

}  // namespace stela
