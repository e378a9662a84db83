#include "support/messages.hpp"

#include <stela/framework/retry.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela {
namespace {

using test::message_of;
using ::testing::HasSubstr;

/// Fails `failures` times with what `fail` throws; the number of calls is the result.
template <class Fail>
int calls_until_done(int attempts, int failures, Fail fail) {
  int calls = 0;
  try {
    return retry({.attempts = attempts}, [&] {
      if (++calls <= failures) fail();
      return calls;
    });
  } catch (const std::exception&) {
    return -calls;
  }
}

void conflict() {
  throw ConcurrencyConflict{"order-1", "version 1", StreamVersion{2}};
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
  EXPECT_THROW(retry({.attempts = 2}, conflict), ConcurrencyConflict);
}

TEST(Retry, RerunsNothingElse) {
  EXPECT_EQ(calls_until_done(3, 1, [] { throw CommitInDoubt{"who knows"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw UniquenessViolated{"taken"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw StoreFull{"full"}; }), -1);
  EXPECT_EQ(calls_until_done(3, 1, [] { throw std::domain_error{"no"}; }), -1);
}

TEST(Retry, NeedsAnAttempt) {
  EXPECT_THAT(message_of<UsageError>([] { retry({.attempts = 0}, [] {}); }),
              HasSubstr("1 attempt or more"));
}

TEST(Retry, HasThreeAttemptsUnlessItIsTold) {
  int calls = 0;
  EXPECT_THROW(retry([&] {
                 ++calls;
                 conflict();
               }),
               ConcurrencyConflict);
  EXPECT_EQ(calls, 3);
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
}  // namespace stela
