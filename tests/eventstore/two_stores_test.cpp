// What the writer remembers of a database holds only until somebody else writes to it.
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace stela::two_stores_test {
namespace {

using test::append;
using ::testing::ElementsAre;

class TwoStores : public ::testing::Test {
 protected:
  void expect_dense_versions() {
    std::map<std::string, std::int64_t> versions;
    std::int64_t sequence = 0;
    for (const StoredEvent& event : one->read_all()) {
      ASSERT_EQ(event.sequence.value(), ++sequence);
      ASSERT_EQ(event.version.value(), ++versions[event.stream.name()]);
    }
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> one = test::open_store(path, {.durability = sqlite::Durability::relaxed});
  std::unique_ptr<Store> two = test::open_store(path);
};

TEST_F(TwoStores, SeeEachOthersAppends) {
  append(*one, "order-1");
  append(*two, "order-1", {{"shipped", 1, true, "{}"}});
  append(*one, "order-1", {{"shipped", 1, true, "{}"}});
  append(*two, "order-1");

  EXPECT_THAT(test::lines(one->read_all()),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 shipped {}",
                          "3 order-1@3 shipped {}", "4 order-1@4 noted {}"));
  std::vector<std::int64_t> before;
  for (const StoredEvent& event : two->read_all()) {
    before.push_back(event.published_before.value());
  }
  EXPECT_THAT(before, ElementsAre(0, 0, 2, 3));
}

TEST_F(TwoStores, TakeEachOthersAggregatesAndPositionsAsTheirOwn) {
  test::Order order = test::Order::place(Id<test::Order>::from("7"), "jane", 100);
  Repository<test::Order>{*one}.save(order);
  order.note("by the other handle");
  EXPECT_EQ(Repository<test::Order>{*two}.save(order).last, GlobalSequence{2});
  const AppendCondition read =
      AppendCondition::at(one->standpoint(), {{{.tags = {StreamId::parse("order-7")}}}});
  two->append({.condition = &read});

  one.reset();
  two.reset();
  one = test::open_store(path);
  order.note("by the handle that was opened again");
  EXPECT_EQ(Repository<test::Order>{*one}.save(order).last, GlobalSequence{3});
}

TEST_F(TwoStores, KeepManyStreamsDenseWhenTheyTakeTurns) {
  std::mt19937 random{7};
  for (int i = 0; i < 3000; ++i) {
    const std::string stream = "order-" + std::to_string(random() % 40);
    const std::string type = "type_" + std::to_string(random() % 30);
    const std::vector<NewEvent> events(1 + random() % 3,
                                       NewEvent{type, 1, random() % 2 == 0, "{}"});
    append(random() % 2 == 0 ? *one : *two, stream, events);
  }
  expect_dense_versions();
}

TEST_F(TwoStores, KeepManyStreamsGaplessWhenTheyWriteConcurrently) {
  {
    std::vector<std::jthread> writers;
    for (Store* const store : {one.get(), two.get(), one.get(), two.get()}) {
      writers.emplace_back([store] {
        for (int i = 0; i < 300; ++i) append(*store, "order-" + std::to_string(i % 17));
      });
    }
  }
  EXPECT_EQ(one->last_sequence(), GlobalSequence{1200});
  expect_dense_versions();
}

TEST_F(TwoStores, NoticeAppendsAfterARollBack) {
  append(*one, "order-1");
  EXPECT_THROW(one->transact([&](Transaction& transaction) {
    append(transaction, "order-1", 5);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  append(*two, "order-1");
  append(*one, "order-1");
  expect_dense_versions();
  EXPECT_EQ(two->last_sequence(), GlobalSequence{3});
}

TEST_F(TwoStores, ForgetMoreStreamsThanTheyCanRemember) {
  constexpr int streams = 70'000;
  static_assert(streams > 65'536);
  const NewEvent event{"noted", 1, false, "{}"};
  const auto append_to_all = [&](Store& store) {
    for (int begin = 0; begin < streams; begin += 1000) {
      std::vector<StreamId> ids;
      for (int i = begin; i < begin + 1000; ++i)
        ids.push_back(StreamId::of("o", std::to_string(i)));
      std::vector<StreamAppend> appends;
      for (const StreamId& id : ids) appends.push_back({id, ExpectedVersion::any(), {&event, 1}});
      store.append({.streams = appends});
    }
  };
  append_to_all(*one);
  append_to_all(*one);
  append_to_all(*two);

  EXPECT_EQ(one->last_sequence(), GlobalSequence{3 * streams});
  expect_dense_versions();
}

}  // namespace
}  // namespace stela::two_stores_test
