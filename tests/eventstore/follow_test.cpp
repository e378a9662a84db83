// The laws that all who follow a log share.
#include "database/transaction.hpp"
#include "follow/backoff.hpp"
#include "follow/blame.hpp"
#include "follow/failing.hpp"
#include "follow/lease.hpp"
#include "follow/trouble.hpp"
#include "support/engine.hpp"

#include <stela/framework/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela::follow_test {
namespace {

using namespace std::chrono_literals;

Timestamp at(std::chrono::seconds since_epoch) {
  return Timestamp{since_epoch};
}

TEST(Lease, IsFreeWithoutAnOwnerOrOnceItIsOver) {
  const follow::StoredLease lease{at(100s), 15s};

  EXPECT_TRUE(follow::is_free("", lease, at(90s)));
  EXPECT_FALSE(follow::is_free("a", lease, at(90s)));
  EXPECT_TRUE(follow::is_free("a", lease, at(100s)));
}

TEST(Lease, IsFreeIfItEndsFurtherAwayThanItMay) {
  EXPECT_FALSE(follow::is_free("a", {at(130s), 15s}, at(100s)));
  EXPECT_TRUE(follow::is_free("a", {at(131s), 15s}, at(100s)));
}

TEST(Lease, IsStoredWithItsOwnLength) {
  const follow::Term term{"a", 15s, at(100s), 7};

  EXPECT_EQ(term.stored().until, at(115s));
  EXPECT_EQ(term.stored().length, 15s);
  EXPECT_EQ(term.stored().presence, 7);
}

TEST(Lease, IsRenewedAfterAThirdOfItsLength) {
  follow::Renewal renewal{15s};

  EXPECT_TRUE(renewal.is_due(at(100s)));
  renewal.note(at(100s));
  EXPECT_FALSE(renewal.is_due(at(104s)));
  EXPECT_TRUE(renewal.is_due(at(105s)));
}

TEST(Lease, IsRenewedAtOnceIfTheClockWasPutBack) {
  follow::Renewal renewal{15s};

  renewal.note(at(100s));

  EXPECT_TRUE(renewal.is_due(at(99s)));
}

/// Gives the same bytes each time.
struct SameBytes final : Random {
  explicit SameBytes(std::uint8_t the_byte) : byte{the_byte} {}
  void fill(std::span<std::uint8_t> bytes) override { std::fill(bytes.begin(), bytes.end(), byte); }
  std::uint8_t byte;
};

TEST(Backoff, DoublesUpToItsLongestWait) {
  const follow::Backoff backoff{1s, 10s};

  EXPECT_EQ(backoff.after(1), 1s);
  EXPECT_EQ(backoff.after(2), 2s);
  EXPECT_EQ(backoff.after(4), 8s);
  EXPECT_EQ(backoff.after(5), 10s);
  EXPECT_EQ(backoff.after(1'000'000), 10s);
  EXPECT_EQ(backoff.longest(), 10s);
}

TEST(Backoff, IsNoLongerThanItsLongestWaitFromTheBeginning) {
  EXPECT_EQ((follow::Backoff{5s, 2s}.after(1)), 2s);
  EXPECT_EQ((follow::Backoff{0s, 2s}.after(3)), 0s);
}

TEST(Backoff, GivesOrTakesItsJitter) {
  const follow::Backoff backoff{1s, 10s, 0.25};
  SameBytes least{0x00};
  SameBytes most{0xff};

  EXPECT_EQ(backoff.after(2, least), 1500ms);
  EXPECT_NEAR(static_cast<double>(backoff.after(2, most).count()), 2'500'000.0, 1.0);
  EXPECT_EQ(backoff.longest(), 12500ms);
}

TEST(Backoff, LastsUntilTheNextAttempt) {
  const follow::Backoff backoff{1s, 10s};

  EXPECT_EQ(backoff.left(at(104s), at(100s)), 4s);
  EXPECT_EQ(backoff.left(at(100s), at(100s)), 0s);
  EXPECT_EQ(backoff.left(at(99s), at(100s)), 0s);
}

TEST(Backoff, EndsIfTheClockWasPutBackByMoreThanAnyWait) {
  const follow::Backoff backoff{1s, 10s};

  EXPECT_EQ(backoff.left(at(120s), at(100s)), 20s);
  EXPECT_EQ(backoff.left(at(121s), at(100s)), 0s);
}

template <class Thrown>
follow::Fault fault_of(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return follow::current_fault();
  }
}

using follow::Blame;

TEST(Blame, IsToldByWhatAHandlerThrew) {
  EXPECT_EQ(fault_of(std::bad_alloc{}).blame, Blame::nobody);
  EXPECT_EQ(fault_of(UnknownEvent{"order.placed v9"}).blame, Blame::newer);
  EXPECT_EQ(fault_of(CorruptEvent{"bytes"}).blame, Blame::unreadable);
  EXPECT_EQ(fault_of(database::CommittedByCaller{"COMMIT"}).blame, Blame::committed);
  EXPECT_EQ(fault_of(UsageError{"no"}).blame, Blame::handler);
  EXPECT_EQ(fault_of(StoreBusy{"another store's"}).blame, Blame::handler);
  EXPECT_EQ(fault_of(std::runtime_error{"no"}).blame, Blame::handler);
  EXPECT_EQ(fault_of(7).blame, Blame::handler);
}

TEST(Blame, HasABoundedText) {
  EXPECT_EQ(fault_of(std::runtime_error{"no stock"}).what, "no stock");
  EXPECT_EQ(fault_of(std::runtime_error{std::string(5000, 'x')}).what.size(), 2000U);
  EXPECT_EQ(fault_of(7).what, "something was thrown that isn't a std::exception");
}

TEST(Blame, CountsAttemptsOfTheHandlerOnly) {
  EXPECT_TRUE(follow::is_counted(Blame::handler));
  EXPECT_TRUE(follow::is_counted(Blame::unreadable));
  EXPECT_TRUE(follow::is_counted(Blame::committed));
  EXPECT_FALSE(follow::is_counted(Blame::newer));
  EXPECT_FALSE(follow::is_counted(Blame::nobody));
}

TEST(Blame, SaysWhetherAnotherAttemptCanHelp) {
  EXPECT_FALSE(follow::is_final(Blame::handler, 4, 5));
  EXPECT_TRUE(follow::is_final(Blame::handler, 5, 5));
  EXPECT_FALSE(follow::is_final(Blame::unreadable, 4, 5));
  EXPECT_TRUE(follow::is_final(Blame::committed, 1, 5));
  EXPECT_TRUE(follow::is_final(Blame::newer, 0, 5));
  EXPECT_FALSE(follow::is_final(Blame::nobody, 0, 0));
}

TEST(Failing, CountsTheAttemptsOfOneEvent) {
  const follow::Failing failing{.at = 7, .attempts = 2};

  EXPECT_EQ(failing.attempts_at(7), 2);
  EXPECT_EQ(failing.attempts_at(8), 0);
  EXPECT_FALSE(failing.has_no_attempt());
  EXPECT_TRUE((follow::Failing{.at = 7}.has_no_attempt()));
  EXPECT_FALSE(follow::Failing{}.has_no_attempt());
}

TEST(Failing, PausesUntilTheNextAttempt) {
  const follow::Backoff backoff{1s, 10s};

  EXPECT_EQ((follow::Failing{.at = 7, .next_attempt_at = at(103s)}.pause_left(backoff, at(100s))),
            3s);
  EXPECT_EQ((follow::Failing{.next_attempt_at = at(103s)}.pause_left(backoff, at(100s))), 0s);
}

class Trouble : public ::testing::Test {
 protected:
  template <class Thrown>
  std::optional<std::string> of(const Thrown& thrown) {
    return follow::trouble_of(store_.database(), [&] { throw thrown; });
  }

  Store store_ = test::open_empty();
};

TEST_F(Trouble, OfTheDatabaseOrForWantOfMemoryIsWaitedOut) {
  EXPECT_EQ(of(StoreBusy{"locked"}), "locked");
  EXPECT_EQ(of(StoreFull{"full"}), "full");
  EXPECT_EQ(of(std::bad_alloc{}), "there isn't enough memory for the next events");
  EXPECT_EQ(follow::trouble_of(store_.database(), [] {}), std::nullopt);
}

TEST_F(Trouble, ThatNoWaitingEndsIsThrown) {
  EXPECT_THROW(of(UsageError{"no"}), UsageError);
  EXPECT_THROW(of(SchemaMismatch{"newer"}), SchemaMismatch);
  EXPECT_THROW(of(std::runtime_error{"no"}), std::runtime_error);
}

TEST(Repetition, IsLetThroughEverMoreRarely) {
  follow::Repetition said;
  const follow::Repetition::Steady start{};
  std::vector<int> heard;

  for (int second = 0; second < 20; ++second) {
    if (said.lets_through("locked", start + std::chrono::seconds{second})) heard.push_back(second);
  }

  EXPECT_EQ(heard, (std::vector<int>{0, 1, 3, 7, 15}));
}

TEST(Repetition, IsNewOnceItIsForgotten) {
  follow::Repetition said;
  const follow::Repetition::Steady start{};

  EXPECT_TRUE(said.lets_through("locked", start));
  EXPECT_TRUE(said.lets_through("full", start));
  EXPECT_FALSE(said.lets_through("locked", start));
  said.forget();
  EXPECT_TRUE(said.lets_through("locked", start));
}

}  // namespace
}  // namespace stela::follow_test
