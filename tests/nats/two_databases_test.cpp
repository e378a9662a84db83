// Two databases that publish to one broker.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>

#include <string>

namespace stela::two_databases_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::Ledger;
using test::Order;
using test::OrderPlaced;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A database and its relay.
struct Database {
  Database(const std::string& path, const std::string& url, const std::string& prefix,
           const std::string& stream)
      : store{sqlite::open(path)},
        publisher{{.url = url, .prefix = prefix, .stream = stream, .ensure_stream = true}} {}

  void place(const std::string& key) {
    auto order = Order::place(Id<Order>::from(key), "jane", 100);
    Repository<Order>{store}.save(order);
  }
  /// Relays until nothing waits, or the partition is stopped: says why.
  std::optional<StopReason> publish() {
    OutboxStatus status;
    EXPECT_TRUE(test::eventually([&] {
      relay.run_once();
      status = operations.status();
      return status.stopped > 0 || status.pending + status.in_flight + status.retrying == 0;
    }));
    return status.partitions.front().stopped;
  }

  Store store;
  Outbox outbox{store};
  nats::Publisher publisher;
  Relay relay{outbox, publisher, {.retry_backoff = 20ms, .retry_backoff_max = 100ms}};
  OutboxOperations operations{store, {.who = "ann"}};
};

class TwoDatabases : public ::testing::Test {
 protected:
  /// An event each, of streams of one name.
  void publish_one_each() const {
    Database orders{dir.file("orders.db"), server.url(), "orders", "ORDERS"};
    Database billing{dir.file("billing.db"), server.url(), "billing", "BILLING"};
    for (Database* const one : {&orders, &billing}) {
      one->place("1");
      EXPECT_EQ(one->publish(), std::nullopt);
    }
  }
  /// How many messages of the stream have an effect.
  std::int64_t handled(Ledger& ledger, const std::string& stream) const {
    nats::Consumer consumer{ledger.store,
                            {.url = server.url(), .name = "effects", .stream = stream}};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    return consumer.run_once().handled;
  }
  /// The stores' sequences of the messages in a stream.
  std::string log(const std::string& stream) const {
    std::string log;
    for (const auto& message : JetStream{server.url()}.messages(stream)) {
      log += message.headers.at("Stela-Sequence") + ' ';
    }
    return log;
  }

  test::TempDir dir;
  test::NatsServer server;
};

TEST_F(TwoDatabases, PublishToStreamsOfTheirOwnAndOneConsumerReadsBoth) {
  publish_one_each();

  Ledger ledger{dir.file("effects.db")};
  for (const char* const stream : {"ORDERS", "BILLING"}) {
    EXPECT_EQ(handled(ledger, stream), 1) << stream;
  }
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@1 order.placed"));
}

TEST_F(TwoDatabases, OfOneStreamStopTheOneThatFindsTheOthersMessages) {
  Database first{dir.file("first.db"), server.url(), "shop", "SHOP"};
  Database second{dir.file("second.db"), server.url(), "shop", "SHOP"};
  first.place("1");
  EXPECT_EQ(first.publish(), std::nullopt);

  second.place("1");
  EXPECT_EQ(second.publish(), StopReason::foreign_writer);
  first.place("2");
  EXPECT_EQ(first.publish(), std::nullopt);
  EXPECT_EQ(log("SHOP"), "1 2 ");

  second.operations.adopt(PartitionId{});
  EXPECT_EQ(second.publish(), std::nullopt);
  first.place("3");
  EXPECT_EQ(first.publish(), StopReason::foreign_writer) << "now the other one";
  EXPECT_EQ(log("SHOP"), "1 2 1 ");
}

TEST_F(TwoDatabases, StopTheCopyThatDiffersFromItsOriginal) {
  {
    Database shop{dir.file("shop.db"), server.url(), "shop", "SHOP"};
    shop.place("1");
    EXPECT_EQ(shop.publish(), std::nullopt);
  }
  {
    auto store = sqlite::open(dir.file("shop.db"));
    (void)sqlite::backup(store, dir.file("copy.db"));
  }
  Database original{dir.file("shop.db"), server.url(), "shop", "SHOP"};
  original.place("2");
  EXPECT_EQ(original.publish(), std::nullopt);

  Database copy{dir.file("copy.db"), server.url(), "shop", "SHOP"};
  copy.place("3");
  EXPECT_EQ(copy.publish(), StopReason::store_went_back);
  original.place("4");
  EXPECT_EQ(original.publish(), std::nullopt);
  EXPECT_EQ(log("SHOP"), "1 2 3 ");
}

TEST_F(TwoDatabases, OfOnePrefixGetNoSecondStream) {
  Database first{dir.file("first.db"), server.url(), "shop", "SHOP"};
  Database second{dir.file("second.db"), server.url(), "shop", "OTHER"};
  first.place("1");
  EXPECT_EQ(first.publish(), std::nullopt);
  second.place("1");

  RelayTick tick;
  EXPECT_TRUE(test::eventually([&] {
    tick = second.relay.run_once();
    return tick.broker.state == BrokerState::misconfigured;
  }));
  EXPECT_THAT(tick.broker.detail, HasSubstr("its subjects 'shop.>' overlap with those of another"));
  EXPECT_EQ(second.operations.status().pending, 1);
}

}  // namespace
}  // namespace stela::two_databases_test
