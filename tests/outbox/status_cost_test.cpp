// What a look at the outbox costs: dashboards and metrics take one every second, whatever waits.
#include "outbox/shop.hpp"
#include "sqlite/core.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace stela::status_cost_test {
namespace {

using test::Shop;

/// How many pages `work` reads, found in the cache or not.
int pages_read(Store& store, const std::function<void()>& work) {
  const auto count_anew = [&] {
    int pages = 0;
    // The connection that was used last is the next one to be used.
    sqlite::core_of(store).reading().read([&](sqlite::Connection& connection) {
      for (const int kind : {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS}) {
        int count = 0;
        int highest = 0;
        sqlite3_db_status(connection.handle(), kind, &count, &highest, 1);
        pages += count;
      }
    });
    return pages;
  };
  count_anew();
  work();
  return count_anew();
}

/// As many events for each of twelve streams.
void append(Shop& shop, std::size_t events) {
  const std::vector<NewEvent> placed(events, NewEvent{"placed", 1, true, "{}"});
  for (int i = 0; i < 12; ++i) test::append(shop.store, "order-" + std::to_string(i), placed);
}

/// The same for a look when so much waits of each stream, and when much does.
void expect_as_cheap(std::size_t waiting, const std::function<void(Shop&)>& look) {
  Shop shop{{.partition_count = 4}};
  append(shop, waiting);
  const int little = pages_read(shop.store, [&] { look(shop); });
  append(shop, 5'000);
  const int much = pages_read(shop.store, [&] { look(shop); });

  EXPECT_GT(little, 0);
  // The trees are deeper, but nobody walks along their leaves, of which there are hundreds.
  EXPECT_LE(much, little + 60);
}

/// From as many messages on as it counts of each partition.
TEST(OutboxCost, OfTheStatusDoesNotGrowWithTheBacklog) {
  expect_as_cheap(most_counted_pending + 1,
                  [](Shop& shop) { EXPECT_TRUE(shop.operations.status().is_pending_lower_bound); });
}

TEST(OutboxCost, OfAFirstPageDoesNotGrowWithTheBacklog) {
  expect_as_cheap(10, [](Shop& shop) { EXPECT_EQ(shop.list({.limit = 10}).size(), 10U); });
}

}  // namespace
}  // namespace stela::status_cost_test
