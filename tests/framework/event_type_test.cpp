#include "support/orders.hpp"

#include <stela/framework/event_set.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::event_type_test {
namespace {

using test::OrderEvents;
using test::OrderNoted;
using test::OrderPlaced;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EventName, IsWordsSeparatedByDots) {
  for (const std::string_view name : {"a", "order.placed", "Order.Line-Added_2", "9", "a.b.c.d"}) {
    EXPECT_TRUE(is_valid_event_name(name)) << name;
  }
  EXPECT_TRUE(is_valid_event_name(std::string(128, 'n')));
}

TEST(EventName, IsNothingElse) {
  for (const std::string_view name :
       {"", ".", ".a", "a.", "a..b", "a b", "a/b", "a*", "é", "a\n"}) {
    EXPECT_FALSE(is_valid_event_name(name)) << name;
  }
  EXPECT_FALSE(is_valid_event_name(std::string(129, 'n')));
  EXPECT_FALSE(is_valid_event_name({"a\0b", 3}));
}

TEST(EventType, SaysWhetherItIsPublished) {
  EXPECT_TRUE(ShouldPublish<OrderPlaced>);
  EXPECT_FALSE(ShouldPublish<OrderNoted>);
  EXPECT_FALSE(ShouldPublish<std::string>);
  EXPECT_EQ((EventType{"a"}.publication), Publication::local);
}

TEST(EventSet, KnowsItsEvents) {
  EXPECT_EQ(OrderEvents::size, 3U);
  EXPECT_TRUE(OrderEvents::contains<OrderNoted>);
  EXPECT_FALSE(OrderEvents::contains<int>);

  std::vector<std::string_view> names;
  OrderEvents::for_each(
      [&]<class E>(std::type_identity<E>) { names.push_back(E::event_type.name); });
  EXPECT_THAT(names, ElementsAre("order.placed", "order.noted", "order.shipped"));
}

struct StockCounted {
  static constexpr EventType event_type{"stock.counted"};
  template <class Archive>
  void serialize(Archive&) {}
};
struct StockMovedV1 {
  static constexpr EventType event_type{"stock.transferred", 1};
  template <class Archive>
  void serialize(Archive&) {}
};
struct StockMoved {
  static constexpr EventType event_type{"stock.moved", 2, should_publish};
  static constexpr auto former_names = names("stock.transferred", "stock.shifted");
  using Supersedes = StockMovedV1;
  static StockMoved upcast(StockMovedV1) { return {}; }
  template <class Archive>
  void serialize(Archive&) {}
};

TEST(Catalogue, DescribesTheEventsOfAllItsSets) {
  const auto all = Catalogue<OrderEvents, EventSet<StockCounted, StockMoved>>::describe();

  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].type.name, "order.placed");
  EXPECT_EQ(all[0].type.publication, should_publish);
  EXPECT_THAT(all[0].former_names, IsEmpty());
  EXPECT_THAT(all[0].versions, ElementsAre(1));
  EXPECT_EQ(all[4].type.name, "stock.moved");
  EXPECT_THAT(all[4].former_names, ElementsAre("stock.transferred", "stock.shifted"));
  EXPECT_THAT(all[4].versions, ElementsAre(2, 1));
}

}  // namespace
}  // namespace stela::event_type_test
