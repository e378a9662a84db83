// A relay whose PostgreSQL server gives way to its standby, or stands behind a pooler.
#include "nats/jetstream.hpp"
#include "support/histories.hpp"
#include "support/nats_server.hpp"
#include "support/pooler.hpp"
#include "support/postgres_pair.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::postgres_failover_test {
namespace {

using test::eventually;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void append(EventStore& store, int number) {
  test::append(store, "order-1", {NewEvent{"order.placed", 1, true, std::to_string(number)}});
}

class FailoverOfARelay : public ::testing::Test {
 protected:
  /// As a process would, in a thread.
  std::jthread start_relay(const std::string& url) const {
    return std::jthread{[this, url](std::stop_token stop) {
      Store store = stela::open(url);
      Outbox outbox{store};
      nats::Publisher publisher{
          {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
      Relay relay{outbox, publisher};
      relay.run(std::move(stop));
    }};
  }
  std::vector<std::string> published() const {
    test::JetStream stream{broker.url()};
    std::vector<std::string> payloads;
    for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
    return payloads;
  }
  static PartitionStatus partition(Store& store) {
    return OutboxOperations{store}.status().partitions.front();
  }
  bool publishes(Store& store, std::int64_t count) const {
    return eventually([&] {
      try {
        return partition(store).published == count;
      } catch (const StoreBusy&) {
        return false;
      }
    });
  }

  const test::NatsServer broker;
};

TEST_F(FailoverOfARelay, PublishesEachEventOnceWithASynchronousStandby) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  const Outbox outbox{store};
  pair.make_synchronous();
  const std::jthread relay = start_relay(pair.url());
  for (int number = 1; number <= 20; ++number) append(store, number);
  ASSERT_TRUE(publishes(store, 20));
  for (int number = 21; number <= 25; ++number) append(store, number);
  pair.fail_over();
  append(store, 26);
  EXPECT_TRUE(publishes(store, 26));
  std::vector<std::string> expected;
  for (int number = 1; number <= 26; ++number) expected.push_back(std::to_string(number));
  EXPECT_EQ(published(), expected);
  EXPECT_FALSE(partition(store).stopped);
}

TEST_F(FailoverOfARelay, StopsThePartitionWhoseEventsAnAsynchronousStandbyLost) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  const Outbox outbox{store};
  const std::jthread relay = start_relay(pair.url());
  for (int number = 1; number <= 5; ++number) append(store, number);
  ASSERT_TRUE(publishes(store, 5));
  pair.catch_up();
  pair.cut_replication();
  for (int number = 6; number <= 8; ++number) append(store, number);
  ASSERT_TRUE(publishes(store, 8));
  std::vector<std::string> lost;
  for (const StoredEvent& event : store.read_all({.from = GlobalSequence{6}})) {
    lost.push_back(event.id.to_string());
  }
  pair.fail_over();
  // Of the same number as one that the broker has, and another event.
  append(store, 60);
  ASSERT_EQ(store.last_sequence(), GlobalSequence{6});

  ASSERT_TRUE(eventually([&] { return partition(store).stopped.has_value(); }));
  EXPECT_EQ(partition(store).stopped, StopReason::store_went_back);
  EXPECT_THAT(partition(store).stopped_detail,
              AllOf(HasSubstr("3 events that the store doesn't have"),
                    HasSubstr("event 6 as " + lost.front()), HasSubstr("event 8 as " + lost[2])));
  EXPECT_THAT(published(), ElementsAre("1", "2", "3", "4", "5", "6", "7", "8"));

  // An operator takes the broker as it is.
  OutboxOperations{store}.adopt(partition(store).id);
  EXPECT_TRUE(publishes(store, 6));
  EXPECT_THAT(published(), ElementsAre("1", "2", "3", "4", "5", "6", "7", "8", "60"));
}

TEST_F(FailoverOfARelay, StopsThePartitionOfADatabaseThatAnOlderDumpReplaced) {
  test::PostgresServer server;
  const std::string dump = server.folder() + "/shop.sql";
  server.ask("CREATE DATABASE shop");
  Store store = stela::open(server.url("shop"));
  const Outbox outbox{store};
  const std::jthread relay = start_relay(server.url("shop"));
  append(store, 1);
  ASSERT_TRUE(publishes(store, 1));
  server.dump("shop", dump);
  append(store, 2);
  ASSERT_TRUE(publishes(store, 2));
  server.replace_by_dump("shop", dump);
  // The relay's process outlives it, and the lease in the dump is its own.
  append(store, 20);
  ASSERT_TRUE(eventually([&] { return partition(store).stopped.has_value(); }));
  EXPECT_EQ(partition(store).stopped, StopReason::store_went_back);
  EXPECT_THAT(published(), ElementsAre("1", "2"));
}

TEST_F(FailoverOfARelay, StopsThePartitionAtTheAcquisitionOfAnotherRelay) {
  test::PostgresPair pair;
  Store store = stela::open(pair.url());
  const Outbox outbox{store};
  {
    const std::jthread relay = start_relay(pair.url());
    append(store, 1);
    ASSERT_TRUE(publishes(store, 1));
    pair.catch_up();
    pair.cut_replication();
    append(store, 2);
    ASSERT_TRUE(publishes(store, 2));
  }
  pair.fail_over();
  append(store, 20);
  append(store, 21);
  const std::jthread relay = start_relay(pair.url());
  ASSERT_TRUE(eventually([&] { return partition(store).stopped.has_value(); }));
  EXPECT_THAT(partition(store).stopped_detail, HasSubstr("the broker has event 2 as "));
  EXPECT_THAT(published(), ElementsAre("1", "2"));
}

TEST(PooledRelay, PublishesEachEventOnceAndInOrder) {
  constexpr int events = 40;
  test::PostgresServer server;
  test::Pooler pooler{server};
  const test::NatsServer broker;
  const std::string url = pooler.conninfo();
  Store store = postgres::open(url);
  const Outbox outbox{store, {.partition_count = 1}};
  std::vector<std::jthread> relays;
  std::latch ready{2};
  for (int i = 0; i < 2; ++i) {
    relays.emplace_back([&](std::stop_token stop) {
      Store own = postgres::open(url);
      Outbox own_outbox{own};
      nats::Publisher publisher{
          {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
      ready.count_down();
      Relay{own_outbox, publisher}.run(std::move(stop));
    });
  }
  ready.wait();
  std::vector<std::string> expected;
  for (int number = 0; number < events; ++number) {
    append(store, number);
    expected.push_back(std::to_string(number));
    if (number == events / 2) pooler.restart();
  }
  OutboxOperations operations{store};
  EXPECT_TRUE(eventually([&] {
    try {
      return operations.status().partitions.front().published == events;
    } catch (const StoreBusy&) {
      return false;
    }
  }));
  relays.clear();
  test::JetStream stream{broker.url()};
  std::vector<std::string> payloads;
  for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
  EXPECT_EQ(payloads, expected);
}

}  // namespace
}  // namespace stela::postgres_failover_test
