#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/retry.hpp>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

namespace stela::detail {
namespace {

constexpr std::chrono::hours most{24};

const RetryOptions& checked(const RetryOptions& options) {
  if (options.max_attempts < 1) throw UsageError{"retry needs 1 attempt or more"};
  if (options.deadline.count() < 0 || options.deadline > most) {
    throw UsageError{"retry: deadline is negative, or more than a day"};
  }
  if (options.retry_backoff.count() < 0 || options.retry_backoff_max < options.retry_backoff ||
      options.retry_backoff_max > most) {
    throw UsageError{
        "retry: retry_backoff is negative or longer than retry_backoff_max, or that is more than a "
        "day"};
  }
  return options;
}

}  // namespace

Retries::Retries(const RetryOptions& options)
    : options_{checked(options)},
      end_{options.clock->steady_now() + options.deadline},
      limit_{options.retry_backoff} {}

bool Retries::is_worthwhile(const Error& error) {
  if (!error.is_retryable() || TransactionScope::is_open()) return false;
  if (is_last_conflict(error) || is_last_condition(error) || attempts_++ == options_.max_attempts)
    return false;
  thread_local std::minstd_rand random{std::random_device{}()};
  using Range = std::uniform_int_distribution<std::chrono::microseconds::rep>;
  pause_ = std::chrono::microseconds{Range{limit_.count() / 2, limit_.count()}(random)};
  limit_ = std::min<std::chrono::microseconds>(limit_ * 2, options_.retry_backoff_max);
  return options_.clock->steady_now() + pause_ <= end_;
}

bool Retries::is_last_conflict(const Error& error) {
  const auto* const conflict = dynamic_cast<const ConcurrencyConflict*>(&error);
  if (conflict == nullptr) return false;
  const auto last = std::exchange(conflict_, *conflict);
  return last && last->stream() == conflict->stream() && last->expected() == conflict->expected() &&
         last->actual() == conflict->actual();
}

bool Retries::is_last_condition(const Error& error) {
  const auto* const conflict = dynamic_cast<const ConditionConflict*>(&error);
  if (conflict == nullptr) return false;
  const auto last = std::exchange(condition_, *conflict);
  return last && last->position() == conflict->position() && last->item() == conflict->item();
}

void Retries::pause() const {
  if (options_.wait) return options_.wait(pause_);
  std::this_thread::sleep_for(pause_);
}

}  // namespace stela::detail
