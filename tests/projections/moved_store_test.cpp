// A store that is moved to another handle: what was built on it before goes on.
#include "projections/models.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::test::moved_store_test {
namespace {

using ::testing::ElementsAre;

/// Everything that can be built on a store, on a handle that was then moved from.
struct MovedStore : ::testing::Test {
  MovedStore() {
    projections.add(Totals<1>{});
    projections.add_inline(Counts{});
    store.emplace(std::move(opened));
  }

  void place(const std::string& key) {
    Order order = Order::place(Id<Order>::from(key), "jane", 100);
    orders.save(order);
  }

  const TempDir dir = TempDir::in_memory();
  testing::ManualClock clock;
  /// The handle that it is moved to: it ends after all that is built on the store.
  std::optional<Store> store;
  Store opened = test::open_at(dir.file("shop.db"), {.clock = &clock});
  Outbox outbox{opened, {.fence = Fence::none}};
  OutboxOperations operations{opened};
  ProjectionOperations projectors{opened};
  StoreOperations upkeep{opened};
  Projections projections{opened};
  ModelReader reader{opened};
  Repository<Order> orders{opened};
  EventBus bus{opened};
  EventBus delivered{opened, {}, EventBus::Feed::deliver};
  BusPublisher publisher{delivered};
};

TEST_F(MovedStore, KeepsARepositoryAndItsListeners) {
  std::vector<std::string> heard;
  const auto on_bus = bus.on<OrderPlaced>(
      [&](const Recorded<OrderPlaced>& e) { heard.push_back("bus " + e.stream().name()); });
  const Subscription on_commit = store->on_commit([&](const CommitNotice& notice) {
    heard.push_back("commit " + std::to_string(notice.events.front().sequence.value()));
  });
  Store last = std::move(*store);

  place("1");

  EXPECT_THAT(heard, ElementsAre("bus order-1", "commit 1"));
  EXPECT_EQ(orders.load(Id<Order>::from("1")).state().total_cents, 100);
  EXPECT_EQ(last.last_sequence(), GlobalSequence{1});
  store.emplace(std::move(last));
}

TEST_F(MovedStore, KeepsItsOutboxAndRelay) {
  std::vector<std::string> heard;
  const auto placed = delivered.on<OrderPlaced>(
      [&](const Recorded<OrderPlaced>& e) { heard.push_back(e.stream().name()); });
  Relay relay{outbox, publisher};
  Store last = std::move(*store);

  place("1");
  EXPECT_EQ(operations.status().pending, 1);
  clock.advance(std::chrono::minutes{2});
  EXPECT_EQ(relay.run_once().published, 1);

  EXPECT_THAT(heard, ElementsAre("order-1"));
  store.emplace(std::move(last));
}

TEST_F(MovedStore, KeepsItsOperations) {
  Store last = std::move(*store);

  place("1");

  EXPECT_EQ(projectors.status().size(), 2U);
  EXPECT_EQ(upkeep.list_streams().size(), 1U);
  EXPECT_TRUE(upkeep.verify([](const Problem&) {}).is_sound());
  store.emplace(std::move(last));
}

TEST_F(MovedStore, KeepsItsProjections) {
  Runner runner{projections};
  Store last = std::move(*store);

  place("1");
  place("2");
  runner.run_once();

  EXPECT_TRUE(projections.wait_for("totals", GlobalSequence{2}, std::chrono::seconds{0}));
  EXPECT_THAT(lines(reader.query("SELECT id FROM orders ORDER BY id")), ElementsAre("1", "2"));
  EXPECT_THAT(lines(reader.query("SELECT n FROM counts")), ElementsAre("2"));
  EXPECT_EQ(projections.store().id(), last.id());
  store.emplace(std::move(last));
}

TEST_F(MovedStore, KeepsAUnitOfWorkAndARange) {
  place("1");
  EventRange range = store->read_all();
  UnitOfWork unit{*store};
  unit.add(Order::place(Id<Order>::from("2"), "ann", 200));
  Store last = std::move(*store);

  EXPECT_EQ(range.next_page().size(), 1);
  unit.commit();

  EXPECT_EQ(orders.load(Id<Order>::from("2")).state().total_cents, 200);
  store.emplace(std::move(last));
}

}  // namespace
}  // namespace stela::test::moved_store_test
