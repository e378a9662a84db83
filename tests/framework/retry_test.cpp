#include "support/messages.hpp"

#include <stela/framework/retry.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace stela::retry_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using ::testing::HasSubstr;

void no_wait(std::chrono::microseconds) {}

/// Fails `failures` times with what `fail` throws; the number of calls is the result.
template <class Fail>
int calls_until_done(int attempts, int failures, Fail fail) {
  int calls = 0;
  try {
    return retry({.max_attempts = attempts, .wait = no_wait}, [&] {
      if (++calls <= failures) fail();
      return calls;
    });
  } catch (const std::exception&) {
    return -calls;
  }
}

/// Somebody else was faster, each time again.
void conflict() {
  static std::int64_t version = 1;
  ++version;
  throw ConcurrencyConflict{"order-1", "version 1", StreamVersion{version}};
}

TEST(Retry, RunsWorkThatSucceedsOnce) {
  EXPECT_EQ(calls_until_done(3, 0, conflict), 1);
}

TEST(Retry, RerunsWorkThatLostARaceOrMetALock) {
  EXPECT_EQ(calls_until_done(3, 2, conflict), 3);
  EXPECT_EQ(calls_until_done(3, 2, [] { throw StoreBusy{"busy"}; }), 3);
}

TEST(Retry, PassesTheLastErrorOn) {
  EXPECT_EQ(calls_until_done(3, 3, conflict), -3);
  EXPECT_THROW(retry({.max_attempts = 2, .wait = no_wait}, conflict), ConcurrencyConflict);
}

TEST(Retry, StopsAtAConflictThatComesBackTheSame) {
  const auto forgot_to_load = [] {
    throw ConcurrencyConflict{"order-1", "no stream", StreamVersion{2}};
  };
  EXPECT_EQ(calls_until_done(100, 100, forgot_to_load), -2);
  EXPECT_EQ(calls_until_done(100, 1, forgot_to_load), 2);
}

TEST(Retry, RerunsNothingElse) {
  EXPECT_EQ(calls_until_done(3, 1, [] { throw CommitInDoubt{"who knows"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw UniquenessViolated{"taken"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw StoreFull{"full"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw std::domain_error{"no"}; }), -1);
}

TEST(Retry, NeedsAnAttempt) {
  EXPECT_THAT(message_of<UsageError>([] { retry({.max_attempts = 0}, [] {}); }),
              HasSubstr("1 attempt or more"));
}

/// The pauses before all attempts at work that never succeeds.
std::vector<std::chrono::microseconds> pauses(RetryOptions options) {
  std::vector<std::chrono::microseconds> all;
  testing::ManualClock clock;
  options.clock = &clock;
  options.wait = [&](std::chrono::microseconds pause) {
    all.push_back(pause);
    clock.advance(pause);
  };
  EXPECT_THROW(retry(options, conflict), ConcurrencyConflict);
  return all;
}

TEST(Retry, PausesLongerEachTime) {
  const auto all = pauses({.max_attempts = 7, .retry_backoff = 8ms, .retry_backoff_max = 100ms});

  const std::vector<std::chrono::milliseconds> limits{8ms, 16ms, 32ms, 64ms, 100ms, 100ms};
  ASSERT_EQ(all.size(), limits.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_GE(all[i], limits[i] / 2) << i;
    EXPECT_LE(all[i], limits[i]) << i;
  }
}

TEST(Retry, PausesForADifferentTimeEachTime) {
  const auto all =
      pauses({.max_attempts = 20, .deadline = 24h, .retry_backoff = 1h, .retry_backoff_max = 1h});
  const std::set<std::chrono::microseconds> different{all.begin(), all.end()};

  EXPECT_GT(different.size(), 10U);
}

TEST(Retry, BeginsNoAttemptAfterItsDeadline) {
  const auto all = pauses(
      {.max_attempts = 1000, .deadline = 1s, .retry_backoff = 100ms, .retry_backoff_max = 100ms});

  EXPECT_GE(all.size(), 10U);
  EXPECT_LE(std::accumulate(all.begin(), all.end(), 0us), 1s);
}

TEST(Retry, EndsByDefaultWithinItsDeadline) {
  const auto all = pauses({});

  EXPECT_EQ(all.size(), 99U);
  EXPECT_LE(std::accumulate(all.begin(), all.end(), 0us), 30s);
}

TEST(Retry, DoesNotPauseBeforeAnErrorItPassesOn) {
  int waits = 0;
  const RetryOptions options{.wait = [&](std::chrono::microseconds) { ++waits; }};

  retry(options, [] {});
  EXPECT_THROW(retry(options, [] { throw StoreFull{"full"}; }), StoreFull);
  EXPECT_EQ(waits, 0);
}

TEST(Retry, EndsWithTheExceptionOfItsWait) {
  const auto stop = [](std::chrono::microseconds) { throw std::runtime_error{"stopped"}; };
  EXPECT_EQ(message_of<std::runtime_error>([&] { retry({.wait = stop}, conflict); }), "stopped");
}

TEST(Retry, RefusesOptionsOutOfRange) {
  EXPECT_THROW(retry({.deadline = -1ms}, [] {}), UsageError);
  EXPECT_THROW(retry({.deadline = 25h}, [] {}), UsageError);
  EXPECT_THROW(retry({.retry_backoff = -1ms}, [] {}), UsageError);
  EXPECT_THROW(retry({.retry_backoff = 2ms, .retry_backoff_max = 1ms}, [] {}), UsageError);
  EXPECT_THROW(retry({.retry_backoff_max = 25h}, [] {}), UsageError);
}

TEST(Retry, ReturnsReferencesAsReferences) {
  int value = 0;
  int& same = retry([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
}

TEST(ErrorCode, IsNamedAsInLogs) {
  EXPECT_EQ(to_string(ErrorCode::concurrency_conflict), "concurrency_conflict");
  EXPECT_EQ(to_string(StoreFull{"full"}.code()), "store_full");
  EXPECT_EQ(to_string(UsageError{"x"}.code()), "usage");
}

TEST(ConcurrencyConflict, CarriesBothVersions) {
  const ConcurrencyConflict e{"order-1", "version 1", StreamVersion{2}};

  EXPECT_EQ(e.stream(), "order-1");
  EXPECT_EQ(e.expected(), "version 1");
  EXPECT_EQ(e.actual(), StreamVersion{2});
  EXPECT_TRUE(e.is_retryable());
}

}  // namespace
}  // namespace stela::retry_test
