// How a relay asks a broker that isn't as it should be.
#include "outbox/shop.hpp"

#include <gtest/gtest.h>

namespace stela {
namespace {

using namespace std::chrono_literals;
using test::Shop;

/// Tries in five minutes, of which the waits between them are 1, 2, 4, 8, 16 and 30 seconds, then
/// 30 each, give or take a quarter.
constexpr int fewest = 9;
constexpr int most = 20;

class BrokerTrouble : public ::testing::TestWithParam<Fence> {};

INSTANTIATE_TEST_SUITE_P(EveryFence, BrokerTrouble,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

TEST_P(BrokerTrouble, ProbesEverMoreSlowlyThoughItConnectsEachTime) {
  Shop shop{{.fence = GetParam()}, {.retry_backoff = 1s}};
  shop.append("order-1");
  bool tried = false;
  shop.broker.refuse = [&](const OutgoingMessage&) {
    tried = true;
    return Answer::Kind::misconfigured;
  };
  int tries = 0;
  for (int second = 0; second < 300; ++second) {
    shop.relay();
    if (std::exchange(tried, false)) ++tries;
  }
  EXPECT_GE(tries, fewest);
  EXPECT_LE(tries, most);
  EXPECT_EQ(shop.totals(), "1 pending");

  // Nothing is charged to the message, and it goes with the next probe.
  shop.broker.refuse = nullptr;
  for (int second = 0; second < 40; ++second) shop.relay();
  EXPECT_EQ(shop.broker.log(PartitionId{0}), "1");
}

TEST(BrokerTroubles, OnePartitionThatWorksDoesNotHurryTheProbesOfAnother) {
  Shop shop{{.partition_count = 2}, {.retry_backoff = 1s}};
  for (int i = 0; i < 8; ++i) shop.append("order-" + std::to_string(i));
  bool tried = false;
  const PartitionId sick = PartitionId::at(1, 2);
  shop.broker.refuse = [&](const OutgoingMessage& message) -> std::optional<Answer::Kind> {
    if (message.partition != sick) return std::nullopt;
    tried = true;
    return Answer::Kind::misconfigured;
  };
  int tries = 0;
  for (int second = 0; second < 300; ++second) {
    shop.relay();
    if (std::exchange(tried, false)) ++tries;
  }
  EXPECT_GE(tries, fewest);
  EXPECT_LE(tries, most);
  EXPECT_NE(shop.broker.log(PartitionId::at(0, 2)), "");
  EXPECT_EQ(shop.broker.log(sick), "");
}

}  // namespace
}  // namespace stela
