// A clock of the user's that throws.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework/clock.hpp>

#include <gtest/gtest.h>

#include <stdexcept>

namespace stela::clock_test {
namespace {

/// The host's, until it is told to fail.
class FailingClock final : public Clock {
 public:
  Timestamp now() const override {
    if (fails) throw std::runtime_error{"no time"};
    return system_clock().now();
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    if (steady_calls_left == 0) throw std::runtime_error{"no steady time"};
    --steady_calls_left;
    return system_clock().steady_now();
  }

  bool fails = false;
  mutable int steady_calls_left = 1'000'000;
};

class ClockOfAStore : public ::testing::Test {
 protected:
  test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  FailingClock clock;
  Store store = sqlite::open(path, {.clock = &clock});
};

TEST_F(ClockOfAStore, LeavesNoTransactionOpenWhenItThrows) {
  test::append(store, "order-1");
  clock.fails = true;
  EXPECT_THROW(test::append(store, "order-1"), std::runtime_error);
  test::RawSqlite{path}.run("BEGIN IMMEDIATE; COMMIT");

  clock.fails = false;
  EXPECT_EQ(test::append(store, "order-1").last, GlobalSequence{2});
}

TEST_F(ClockOfAStore, UndoesNoCommitWhenItThrowsAfterIt) {
  // It is asked before the transaction, and after it.
  clock.steady_calls_left = 1;
  EXPECT_EQ(test::append(store, "order-1").last, GlobalSequence{1});
  EXPECT_EQ(clock.steady_calls_left, 0);
  EXPECT_EQ(test::lines(store.read_all()).size(), 1U);
}

}  // namespace
}  // namespace stela::clock_test
