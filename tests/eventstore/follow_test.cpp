// The laws that all who follow a log share.
#include "follow/lease.hpp"

#include <gtest/gtest.h>

#include <chrono>

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
  EXPECT_FALSE(follow::is_free("a", {at(7300s)}, at(100s)));
  EXPECT_TRUE(follow::is_free("a", {at(7301s)}, at(100s)));
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

}  // namespace
}  // namespace stela::follow_test
