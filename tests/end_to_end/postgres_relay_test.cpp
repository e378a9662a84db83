// Events of a store on PostgreSQL reach JetStream, by one relay and by several.
#include "nats/jetstream.hpp"
#include "support/histories.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::postgres_relay_test {
namespace {

using test::eventually;
using ::testing::ElementsAre;

void append(EventStore& store, int stream, int number) {
  const std::string payload = std::to_string(number);
  test::append(store, "order-" + std::to_string(stream),
               {NewEvent{"order.placed", 1, true, payload}});
}

nats::PublisherOptions publishing_to(const test::NatsServer& broker) {
  return {.url = broker.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true};
}

/// A process's relay: with a store, an outbox and a publisher of its own.
void run_relay(const std::string& url, const test::NatsServer& broker, std::stop_token stop) {
  Store store = stela::open(url);
  Outbox outbox{store};
  nats::Publisher publisher{publishing_to(broker)};
  Relay relay{outbox, publisher};
  relay.run(std::move(stop));
}

TEST(PostgresRelay, PublishesEachEventOnceAndInOrder) {
  const test::PostgresServer server;
  const test::NatsServer broker;
  Store store = stela::open(server.url());
  Outbox outbox{store};
  nats::Publisher publisher{publishing_to(broker)};
  Relay relay{outbox, publisher};
  for (int number = 1; number <= 3; ++number) append(store, number % 2, number);
  store.transact([](Transaction& transaction) {
    test::append(
        transaction, "order-9",
        {NewEvent{"order.placed", 1, true, "4"}, NewEvent{"order.seen", 1, false, "not published"},
         NewEvent{"order.placed", 1, true, "5"}});
  });

  EXPECT_EQ(relay.run_once().published, 5);
  test::JetStream stream{broker.url()};
  std::vector<std::string> payloads;
  for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
  EXPECT_THAT(payloads, ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_EQ(relay.run_once().published, 0);

  OutboxOperations operations{store};
  const OutboxStatus status = operations.status();
  EXPECT_EQ(status.partitions.front().published, 5);
  EXPECT_TRUE(operations.list({}).empty());
}

TEST(PostgresRelay, RepublishesNothingAfterTheServersCrash) {
  test::PostgresServer server;
  const test::NatsServer broker;
  Store store = stela::open(server.url());
  Outbox outbox{store};
  nats::Publisher publisher{publishing_to(broker)};
  server.stop_flushing_in_the_background();
  {
    Relay relay{outbox, publisher};
    for (int number = 1; number <= 3; ++number) append(store, 1, number);
    EXPECT_EQ(relay.run_once().published, 3);
    server.crash();
    server.start_again();
    append(store, 1, 4);
    EXPECT_TRUE(eventually([&] { return relay.run_once().published == 1; }));
  }
  Relay next{outbox, publisher};
  append(store, 1, 5);
  EXPECT_TRUE(eventually([&] { return next.run_once().published == 1; }));
  test::JetStream stream{broker.url()};
  std::vector<std::string> payloads;
  for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
  EXPECT_THAT(payloads, ElementsAre("1", "2", "3", "4", "5"));
}

TEST(PostgresRelay, SharesPartitionsWithAnother) {
  constexpr int streams = 12;
  constexpr int each = 10;
  const test::PostgresServer server;
  const test::NatsServer broker;
  Store store = stela::open(server.url());
  Outbox outbox{store, {.partition_count = 4}};
  std::vector<std::jthread> relays;
  for (int i = 0; i < 2; ++i) {
    relays.emplace_back([&](std::stop_token stop) { run_relay(server.url(), broker, stop); });
  }
  OutboxOperations operations{store};
  EXPECT_TRUE(eventually([&] {
    const auto workers = operations.status().workers;
    return workers.size() == 2 && workers[0].partitions == 2 && workers[1].partitions == 2;
  }));
  for (int number = 0; number < each; ++number) {
    for (int stream = 0; stream < streams; ++stream) append(store, stream, number);
  }
  EXPECT_TRUE(eventually([&] {
    std::int64_t published = 0;
    for (const auto& partition : operations.status().partitions) published += partition.published;
    return published == streams * each;
  }));
  relays.clear();

  test::JetStream broker_view{broker.url()};
  std::map<std::string, std::vector<std::string>> payloads;
  std::size_t count = 0;
  for (const std::string& name : broker_view.streams()) {
    for (const auto& message : broker_view.messages(name)) {
      payloads[message.headers.at("ce-subject")].push_back(message.payload);
      ++count;
    }
  }
  EXPECT_EQ(count, std::size_t{streams * each});
  EXPECT_EQ(payloads.size(), std::size_t{streams});
  for (const auto& [name, of_stream] : payloads) {
    EXPECT_THAT(of_stream, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")) << name;
  }
}

class PostgresRelayWithoutAFence : public ::testing::TestWithParam<bool> {};

TEST_P(PostgresRelayWithoutAFence, ContinuesAfterItsServerWasKilled) {
  test::PostgresServer server;
  const test::NatsServer broker;
  Store store = stela::open(server.url());
  Outbox outbox{store, {.fence = Fence::none, .leasing = GetParam()}};
  nats::PublisherOptions publishing = publishing_to(broker);
  publishing.fence = Fence::none;
  nats::Publisher publisher{publishing};
  std::exception_ptr ended;
  std::jthread relaying{[&](std::stop_token stop) {
    try {
      Relay{outbox, publisher}.run(std::move(stop));
    } catch (...) {
      ended = std::current_exception();
    }
  }};
  test::JetStream stream{broker.url()};
  const auto has = [&](std::uint64_t count) {
    return eventually(
        [&] { return !stream.streams().empty() && stream.last_sequence("SHOP") == count; });
  };
  append(store, 1, 1);
  EXPECT_TRUE(has(1));

  ::kill(server.id(), SIGKILL);
  server.crash();
  // Its sessions end by themselves, and no other server starts before.
  EXPECT_TRUE(eventually([&] {
    try {
      server.start_again();
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }));
  for (int number = 2; number <= 3; ++number) append(store, 1, number);

  EXPECT_TRUE(has(3));
  relaying.request_stop();
  relaying.join();
  EXPECT_EQ(ended, nullptr);
  std::vector<std::string> payloads;
  for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
  EXPECT_THAT(payloads, ElementsAre("1", "2", "3"));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutLeases, PostgresRelayWithoutAFence, ::testing::Bool());

}  // namespace
}  // namespace stela::postgres_relay_test
