// How much a lane lets be in flight, and what it does when payloads are large.
#include "byte_window.hpp"
#include "outbox/relay/lane_bench.hpp"
#include "relay/fenced_lane.hpp"
#include "relay/open_lane.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stela::byte_window_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t first_size = 1024 * 1024;

TEST(ByteWindow, DoublesWhileAnswersAreQuick) {
  ByteWindow window;
  ASSERT_EQ(window.size(), first_size);
  window.on_stored(first_size - 1, 100ms, 5s);
  EXPECT_EQ(window.size(), first_size);
  window.on_stored(1, 100ms, 5s);
  EXPECT_EQ(window.size(), 2 * first_size);
}

TEST(ByteWindow, HalvesWhenAnswersTakeAQuarterOfTheirTime) {
  ByteWindow window;
  window.on_stored(first_size, 1251ms, 5s);
  EXPECT_EQ(window.size(), first_size / 2);
  window.on_stored(first_size / 2, 1000ms, 5s);
  EXPECT_EQ(window.size(), first_size / 2);
}

TEST(ByteWindow, BeginsSmallAfterAnAnswerThatDidNotCome) {
  ByteWindow window;
  window.on_missed();
  EXPECT_EQ(window.size(), 64 * 1024);
  window.on_stored(64 * 1024, 5s, 5s);
  EXPECT_EQ(window.size(), 64 * 1024);
}

TEST(ByteWindow, ShrinksFurtherWithEachMissAsFarAsItMay) {
  ByteWindow window{{.first = 168 * 1024, .least = 20 * 1024}};
  EXPECT_EQ(window.size(), 168 * 1024);
  window.on_missed();
  EXPECT_EQ(window.size(), 64 * 1024);
  window.on_missed();
  EXPECT_EQ(window.size(), 32 * 1024);
  window.on_missed();
  EXPECT_EQ(window.size(), 20 * 1024);
}

TEST(ByteWindow, HasRoomForTwoOfALargeMessageThatWasQuick) {
  ByteWindow window;
  window.on_stored(5 * first_size, 100ms, 5s);
  EXPECT_EQ(window.size(), 10 * first_size);
}

template <class Lane>
struct LargePayloads : ::testing::Test {
  std::string large = std::string(400 * 1024, 'x');
  test::LaneBench<Lane> bench;

  void let_wait(std::int64_t count) {
    for (std::int64_t i = 1; i <= count; ++i) bench.store.let_wait(i, i, large);
  }
};

/// The broker takes nothing of what was sent, for now.
template <class Lane>
void hold(test::LaneBench<Lane>& bench) {
  const auto sent = bench.publisher.sent;
  for (const auto& [sequence, message] : sent) bench.answer(sequence, test::Kind::full);
  if (std::is_same_v<Lane, relay::FencedLane>) bench.find({});
  bench.run();
}

struct LaneName {
  template <class Lane>
  static std::string GetName(int) {
    return std::is_same_v<Lane, relay::FencedLane> ? "Fenced" : "Open";
  }
};
using Lanes = ::testing::Types<relay::FencedLane, relay::OpenLane>;
TYPED_TEST_SUITE(LargePayloads, Lanes, LaneName);

TYPED_TEST(LargePayloads, AreSentAsTheWindowHasRoom) {
  this->let_wait(9);
  this->bench.begin();
  const std::size_t at_first = this->bench.publisher.sent.size();
  EXPECT_GE(at_first, 2u);
  EXPECT_LE(at_first, 3u);

  this->bench.store_at_broker({1, 2});
  EXPECT_GT(this->bench.publisher.sent.size(), at_first);
  EXPECT_LT(this->bench.publisher.sent.size(), 9u);
}

TYPED_TEST(LargePayloads, AreSentOneByOneIfEachIsTooLarge) {
  this->bench.options.max_in_flight_bytes = 1'000;
  this->let_wait(3);
  this->bench.begin();
  for (std::int64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(this->bench.publisher.sent.size(), static_cast<std::size_t>(i));
    this->bench.store_at_broker({i});
  }
}

TYPED_TEST(LargePayloads, LeaveRoomForOtherPartitions) {
  this->bench.options.max_in_flight_bytes = 4'000'000;
  this->let_wait(100);
  this->bench.begin();
  for (std::int64_t i = 1; i <= 50; ++i) this->bench.store_at_broker({i});
  EXPECT_LE(this->bench.bytes_taken(), 2'500'000);
}

TYPED_TEST(LargePayloads, ExceedTheRemainingRoomByOneMessageAtMost) {
  constexpr std::int64_t of_others = 3'900'000;
  this->bench.options.max_in_flight_bytes = 4'000'000;
  this->bench.let_others_take(of_others, 2'000'000);
  this->let_wait(100);
  this->bench.begin();
  const std::int64_t one = std::ssize(this->large);
  EXPECT_EQ(this->bench.bytes_taken(), of_others + one);
}

TYPED_TEST(LargePayloads, FollowBeforeAllBeforeThemWereAnswered) {
  this->bench.options.max_in_flight_bytes = 4'000'000;
  this->let_wait(100);
  this->bench.begin();
  for (std::int64_t i = 1; i <= 50; ++i) this->bench.store_at_broker({i});
  const auto sent = static_cast<std::int64_t>(this->bench.publisher.sent.size());
  ASSERT_GE(sent, 53);

  for (std::int64_t i = 51; i < sent; ++i) this->bench.store_at_broker({i});
  EXPECT_GT(static_cast<std::int64_t>(this->bench.publisher.sent.size()), sent);
}

TYPED_TEST(LargePayloads, TakeNoRoomWhileTheirPartitionWaits) {
  this->let_wait(9);
  this->bench.begin();
  EXPECT_GT(this->bench.bytes_taken(), 0);

  hold(this->bench);
  EXPECT_EQ(this->bench.bytes_taken(), 0);
}

}  // namespace
}  // namespace stela::byte_window_test
