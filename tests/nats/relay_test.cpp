// The relay against a real nats-server to whose streams something happened, and the ways out.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

namespace stela::relay_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Relaying : public ::testing::Test {
 protected:
  PartitionStatus partition() { return operations.status().partitions.front(); }
  /// Relays until nothing waits.
  bool publishes_all() {
    return test::eventually([this] {
      shop.publish();
      const OutboxStatus status = operations.status();
      return status.pending + status.retrying + status.redeliveries + status.in_flight == 0;
    });
  }
  /// Relays until the partition is stopped, and says why.
  std::optional<StopReason> stops() {
    test::eventually([this] {
      shop.publish();
      return partition().stopped.has_value();
    });
    return partition().stopped;
  }
  /// The events in the stream, with the numbers of their redeliveries; '?' where it isn't ours.
  std::string log() {
    std::string log;
    for (const auto& message : broker().messages("SHOP")) {
      if (!log.empty()) log += ' ';
      const auto sequence = message.headers.find("Stela-Sequence");
      log += sequence == message.headers.end() ? "?" : sequence->second;
      const auto redelivery = message.headers.find("Stela-Redelivery");
      if (redelivery != message.headers.end()) log += 'r' + redelivery->second;
    }
    return log;
  }
  /// What a new consumer of the stream does.
  std::vector<std::string> effects() {
    Ledger ledger{dir.file("effects.db")};
    nats::Consumer consumer{ledger.store,
                            {.url = server.url(), .name = "effects", .stream = "SHOP"}};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
    total = consumer.run_once();
    return ledger.lines();
  }
  /// A connection that no death of the server has broken.
  JetStream& broker() {
    broker_ = std::make_unique<JetStream>(server.url());
    return *broker_;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::Shop shop{dir.file("shop.db"),
                  server.url(),
                  {},
                  {.publish_timeout = 1'000ms},
                  {.publish_timeout = 1'000ms, .retry_backoff = 20ms, .retry_backoff_max = 100ms}};
  OutboxOperations operations{shop.store, {.who = "ann"}};
  nats::ConsumerTick total;

 private:
  std::unique_ptr<JetStream> broker_;
};

TEST_F(Relaying, StopsAtARemadeStreamAndRepublishesOnRequest) {
  shop.place("1");
  shop.place("2");
  ASSERT_TRUE(publishes_all());
  broker().delete_stream("SHOP");
  shop.place("3");

  EXPECT_EQ(stops(), StopReason::broker_lost);
  operations.adopt(PartitionId{}, 0);
  EXPECT_EQ(operations.republish({.to = GlobalSequence{2}}).messages, 2);
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1r1 2r2 3");
  const auto message = broker().message("SHOP", 1);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->headers.at("Nats-Msg-Id"), message->headers.at("ce-id") + ".r1");
  EXPECT_THAT(effects(), ElementsAre("order-1@1 order.placed", "order-2@1 order.placed",
                                     "order-3@1 order.placed"));
}

TEST_F(Relaying, RepublishesMessagesThatConsumersDrop) {
  shop.place("1");
  shop.place("2");
  ASSERT_TRUE(publishes_all());

  operations.republish({.from = GlobalSequence{2}, .to = GlobalSequence{2}});
  EXPECT_TRUE(publishes_all());
  operations.republish({.from = GlobalSequence{2}, .to = GlobalSequence{2}});
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1 2 2r1 2r2");
  EXPECT_THAT(effects(), SizeIs(2));
  EXPECT_EQ(total.duplicates, 2);
}

TEST_F(Relaying, SendsRetriedMessagesAfterTheRestWithANumber) {
  shop.place("first");
  ASSERT_TRUE(publishes_all());
  broker().update_stream("SHOP", [](jsStreamConfig& config) { config.MaxMsgSize = 2'000; });
  shop.place("large", 100, std::string(3'000, 'x'));
  shop.place("other");
  shop.ship("large");
  ASSERT_TRUE(publishes_all());
  EXPECT_EQ(operations.status().parked, 2);
  EXPECT_THAT(operations.show(GlobalSequence{2})->last_error, HasSubstr("10054"));
  broker().update_stream("SHOP", [](jsStreamConfig& config) { config.MaxMsgSize = -1; });

  operations.retry({.all = true});
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1 3 2r1 4r2");
  const auto message = broker().message("SHOP", 3);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->headers.at("Nats-Msg-Id"), message->headers.at("ce-id"));
  EXPECT_THAT(effects(), ElementsAre("order-first@1 order.placed", "order-other@1 order.placed",
                                     "order-large@1 order.placed", "order-large@2 order.shipped"));
}

TEST_F(Relaying, ParksAnEventWhoseHeadersAreTooLarge) {
  {
    const ContextScope scope{{.headers = {{"note", std::string(65'000, 'x')}}}};
    shop.place("1");
  }
  shop.place("2");

  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "2");
  const auto parked = operations.show(GlobalSequence{1});
  ASSERT_TRUE(parked);
  EXPECT_EQ(parked->state, MessageState::parked);
  EXPECT_EQ(parked->reason, SetAsideReason::refused);
  EXPECT_THAT(parked->last_error, HasSubstr("10097"));
}

TEST_F(Relaying, StopsAfterAForeignWriteAndContinuesOnRequest) {
  shop.place("1");
  ASSERT_TRUE(publishes_all());
  broker().publish("shop.order.placed", "somebody else's");
  shop.place("2");

  EXPECT_EQ(stops(), StopReason::foreign_writer);
  EXPECT_EQ(log(), "1 ?");
  operations.adopt(PartitionId{});
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1 ? 2");
}

TEST_F(Relaying, StopsWhereUnseenMessagesCannotBeRead) {
  shop.place("1");
  ASSERT_TRUE(publishes_all());
  broker().publish("shop.order.placed", "somebody else's");
  broker().erase("SHOP", 2);
  shop.place("2");

  EXPECT_EQ(stops(), StopReason::unreadable);
  operations.adopt(PartitionId{});
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1 2");
}

TEST_F(Relaying, ContinuesAfterAPurge) {
  shop.place("1");
  shop.place("2");
  ASSERT_TRUE(publishes_all());
  broker().purge("SHOP");
  shop.place("3");

  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "3");
}

TEST_F(Relaying, StopsWhenTheServerWasStartedWithOlderData) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path{server.folder()} / "jetstream";
  const auto put = [&](const fs::path& from, const fs::path& to) {
    server.kill();
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
    server.start_again();
  };
  shop.place("1");
  ASSERT_TRUE(publishes_all());
  put(folder, dir.file("older"));
  shop.place("2");
  shop.place("3");
  ASSERT_TRUE(publishes_all());
  EXPECT_EQ(log(), "1 2 3");
  put(dir.file("older"), folder);
  EXPECT_EQ(log(), "1");
  shop.place("4");

  EXPECT_EQ(stops(), StopReason::broker_lost);
  EXPECT_EQ(log(), "1") << "nothing is published behind a hole";
  EXPECT_THAT(partition().stopped_detail, StartsWith("the partition was at broker sequence 3"));
  operations.adopt(PartitionId{});
  operations.republish({.from = GlobalSequence{2}, .to = GlobalSequence{3}});
  EXPECT_TRUE(publishes_all());

  EXPECT_EQ(log(), "1 2r1 3r2 4");
  EXPECT_THAT(effects(), SizeIs(4));
}

TEST(RelayingPartitions, OfASealedStreamBlockNoOthers) {
  const test::TempDir dir;
  const test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url(), {.partition_count = 2}};
  JetStream broker{server.url()};
  const auto place = [&](int round) {
    for (int i = 0; i < 8; ++i) shop.place(std::to_string(100 * round + i));
    return shop.publish();
  };
  place(1);
  const std::int64_t well = broker.count("SHOP_p00");
  const std::int64_t sick = broker.count("SHOP_p01");
  ASSERT_GT(well, 0);
  ASSERT_GT(sick, 0);

  broker.update_stream("SHOP_p01", [](jsStreamConfig& config) { config.Sealed = true; });
  place(2);
  const RelayTick tick = place(3);

  EXPECT_EQ(tick.broker.state, BrokerState::misconfigured);
  EXPECT_GT(tick.published, 0);
  EXPECT_EQ(broker.count("SHOP_p01"), sick);
  OutboxOperations operations{shop.store, {.who = "ann"}};
  const OutboxStatus status = operations.status();
  EXPECT_EQ(status.published, broker.count("SHOP_p00") + sick);
  EXPECT_EQ(status.parked, 0);
}

/// A relay that publishes all the time and keeps its leases, by a clock that is moved.
class RelayingAnEditedStream : public ::testing::Test {
 protected:
  /// Less than a lease is long: whoever acquires a partition looks anyway.
  static constexpr auto step = 5s;

  RelayTick publish_for(std::chrono::seconds time) {
    RelayTick tick;
    for (auto passed = 0s; passed < time; passed += step) {
      clock.advance(step);
      shop.place(std::to_string(++placed));
      tick = shop.publish();
    }
    return tick;
  }
  PartitionStatus partition() { return operations.status().partitions.front(); }

  const test::TempDir dir;
  const test::NatsServer server;
  testing::ManualClock clock;
  test::Shop shop{dir.file("shop.db"), server.url(), {}, {}, {}, {.clock = &clock}};
  OutboxOperations operations{shop.store, {.who = "ann"}};
  JetStream broker{server.url()};
  int placed = 0;
};

TEST_F(RelayingAnEditedStream, NoticesDangerousSettingsWithinAMinute) {
  publish_for(20s);
  ASSERT_EQ(broker.count("SHOP"), placed);
  const std::int64_t epoch = partition().epoch;
  broker.update_stream("SHOP", [](jsStreamConfig& config) {
    config.Discard = js_DiscardOld;
    config.MaxMsgs = 50;
  });

  const RelayTick tick = publish_for(60s);

  const std::int64_t kept = broker.count("SHOP");
  EXPECT_EQ(tick.broker.state, BrokerState::misconfigured);
  EXPECT_THAT(partition().last_error, HasSubstr("drops its oldest messages when it is full"));
  publish_for(60s);
  EXPECT_EQ(broker.count("SHOP"), kept) << "nothing goes there any more";
  EXPECT_EQ(partition().epoch, epoch) << "it isn't stopped, and nobody took it over";

  broker.update_stream("SHOP", [](jsStreamConfig& config) {
    config.Discard = js_DiscardNew;
    config.MaxMsgs = 1'000;
  });
  EXPECT_TRUE(test::eventually([&] {
    publish_for(step);
    return broker.count("SHOP") == placed;
  }));
  EXPECT_EQ(partition().last_error, "");
}

TEST(RelayingBinary, PublishesBinaryPayloadsOnlyWhenConfigured) {
  const test::TempDir dir;
  const test::NatsServer server;
  const auto open = [&](const nats::PublisherOptions& broker) {
    return std::make_unique<test::Shop>(dir.file("shop.db"), server.url(), OutboxOptions{}, broker,
                                        RelayOptions{},
                                        sqlite::Options{.codec = Codec::portable_binary});
  };
  EXPECT_THROW(open({}), UsageError);
  const auto shop = open({.codec = Codec::portable_binary});
  shop->place("1", 250);
  shop->publish();

  Ledger ledger{dir.file("effects.db")};
  nats::Consumer consumer{ledger.store, {.url = server.url(), .name = "effects", .stream = "SHOP"}};
  consumer.on<OrderPlaced>([](Transaction& transaction, const Recorded<OrderPlaced>& placed) {
    Ledger::write(transaction, placed->customer + ' ' + std::to_string(placed->total_cents));
  });
  consumer.run_once();

  EXPECT_THAT(ledger.lines(), ElementsAre("jane 250"));
  const auto message = JetStream{server.url()}.message("SHOP", 1);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->headers.at("ce-datacontenttype"), "application/vnd.stela.binary");
  std::string stored;
  codec::encode(Codec::portable_binary, OrderPlaced{"jane", 250}, stored);
  EXPECT_EQ(message->payload, stored);
}

TEST(RelayingBySubject, ReadsNothingBackAfterMessagesOfOtherPartitions) {
  test::TempDir dir;
  test::NatsServer server;
  test::Shop shop{
      dir.file("shop.db"), server.url(), {.partition_count = 4, .fence = Fence::subject}};
  shop.publish();
  for (int i = 0; i < 40; ++i) shop.place(std::to_string(i));

  RelayTick all;
  EXPECT_TRUE(test::eventually([&] {
    const RelayTick tick = shop.publish();
    all.published += tick.published;
    all.read_backs += tick.read_backs;
    return all.published == 40;
  }));

  // Each partition asks once where it stands.
  EXPECT_LE(all.read_backs, 4);
  JetStream broker{server.url()};
  EXPECT_THAT(broker.messages("SHOP"), SizeIs(40));
}

}  // namespace
}  // namespace stela::relay_test
