// What a relay says while its database can't be written to.
#include "outbox/shop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stela::store_trouble_test {
namespace {

using test::RawSqlite;
using test::Shop;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

std::int64_t troubles(Shop& shop) {
  const std::vector<std::string> entries = shop.log.entries();
  return std::count_if(entries.begin(), entries.end(), [](const std::string& entry) {
    return entry.find("relay.store_trouble") != std::string::npos;
  });
}

TEST(StoreTrouble, IsLoggedEverMoreRarelyWhileItLasts) {
  Shop shop;
  shop.append("order-1");
  shop.relay();
  shop.append("order-2");
  RawSqlite other = shop.raw();

  other.run("BEGIN IMMEDIATE");
  for (int second = 0; second < 60; ++second) shop.relay();
  other.run("ROLLBACK");
  EXPECT_THAT(troubles(shop), AllOf(Ge(2), Le(14))) << "1, 2, 4, 8 … seconds apart, of each kind";
  for (int second = 0; second < 5; ++second) shop.relay();

  EXPECT_EQ(shop.broker.log(PartitionId{0}), "1 2");
}

}  // namespace
}  // namespace stela::store_trouble_test
