// How much a lane lets be in flight, and what it does when payloads are large.
#include "byte_window.hpp"
#include "outbox/relay/lane_bench.hpp"
#include "relay/fenced_lane.hpp"

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

struct LargePayloads : ::testing::TestWithParam<Fence> {
  std::string large = std::string(400 * 1024, 'x');
  test::LaneBench<relay::FencedLane> bench{GetParam()};

  void let_wait(std::int64_t count) {
    for (std::int64_t i = 1; i <= count; ++i) bench.store.let_wait(i, i, large);
  }
};

INSTANTIATE_TEST_SUITE_P(EachFence, LargePayloads, ::testing::Values(Fence::stream, Fence::none),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

TEST_P(LargePayloads, AreSentAsTheWindowHasRoom) {
  let_wait(9);
  bench.begin();
  const std::size_t at_first = bench.publisher.sent.size();
  EXPECT_GE(at_first, 2u);
  EXPECT_LE(at_first, 3u);

  bench.store_at_broker({1, 2});
  EXPECT_GT(bench.publisher.sent.size(), at_first);
  EXPECT_LT(bench.publisher.sent.size(), 9u);
}

TEST_P(LargePayloads, AreSentOneByOneIfEachIsTooLarge) {
  bench.options.max_in_flight_bytes = 1'000;
  let_wait(3);
  bench.begin();
  for (std::int64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(bench.publisher.sent.size(), static_cast<std::size_t>(i));
    bench.store_at_broker({i});
  }
}

TEST_P(LargePayloads, LeaveRoomForOtherPartitions) {
  bench.options.max_in_flight_bytes = 4'000'000;
  let_wait(100);
  bench.begin();
  for (std::int64_t i = 1; i <= 50; ++i) bench.store_at_broker({i});
  EXPECT_LE(bench.bytes_taken(), 2'500'000);
}

TEST_P(LargePayloads, ExceedTheRemainingRoomByOneMessageAtMost) {
  constexpr std::int64_t of_others = 3'900'000;
  bench.options.max_in_flight_bytes = 4'000'000;
  bench.let_others_take(of_others, 2'000'000);
  let_wait(100);
  bench.begin();
  const std::int64_t one = std::ssize(large);
  EXPECT_EQ(bench.bytes_taken(), of_others + one);
}

TEST_P(LargePayloads, FollowBeforeAllBeforeThemWereAnswered) {
  bench.options.max_in_flight_bytes = 4'000'000;
  let_wait(100);
  bench.begin();
  for (std::int64_t i = 1; i <= 50; ++i) bench.store_at_broker({i});
  const auto sent = static_cast<std::int64_t>(bench.publisher.sent.size());
  ASSERT_GE(sent, 53);

  for (std::int64_t i = 51; i < sent; ++i) bench.store_at_broker({i});
  EXPECT_GT(static_cast<std::int64_t>(bench.publisher.sent.size()), sent);
}

TEST_P(LargePayloads, TakeNoRoomWhileTheirPartitionWaits) {
  let_wait(9);
  bench.begin();
  EXPECT_GT(bench.bytes_taken(), 0);

  // The broker takes nothing of it, for now.
  const auto sent = bench.publisher.sent;
  for (const auto& [sequence, message] : sent) bench.answer(sequence, test::Kind::full);
  if (GetParam() != Fence::none) bench.find({});
  bench.run();
  EXPECT_EQ(bench.bytes_taken(), 0);
}

}  // namespace
}  // namespace stela::byte_window_test
