// Messages of one stream are handled in order, with nothing but the defaults.
#include "nats/shop_at_broker.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela::consumer_order_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class ConsumingInOrder : public test::ShopAtBroker {
 protected:
  std::unique_ptr<nats::Consumer> make_consumer(const nats::ConsumerOptions& with) {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
    consumer->on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
    return consumer;
  }
  void send_parcels(int count) {
    for (int i = 0; i < count; ++i) shop.send_parcel();
    shop.publish();
  }
  void make_durable(std::chrono::nanoseconds ack_wait) {
    broker.make_consumer("SHOP", "billing",
                         [&](jsConsumerConfig& config) { config.AckWait = ack_wait.count(); });
  }

  testing::ManualClock clock;
  Ledger ledger{dir.file("billing.db"), {.clock = &clock}};
};

TEST_F(ConsumingInOrder, WaitsForMessagesOfADeadProcess) {
  shop.publish();
  const auto consumer = make_consumer(defaults());
  consumer->poll();
  send_parcels(3);
  broker.take("SHOP", "billing", 1);

  consumer->poll();
  // The broker sends it again after its ack_wait of 30 s.
  clock.advance(29s);
  consumer->poll();
  const auto meanwhile = ledger.lines();
  const bool handled = test::eventually([&] {
    broker.give_back();
    consumer->poll();
    return ledger.lines().size() == 3;
  });

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingInOrder, WaitsAsLongAsAnExistingDurableConsumerKeepsIt) {
  shop.publish();
  make_durable(100s);
  const auto consumer = make_consumer(defaults());
  send_parcels(2);
  broker.take("SHOP", "billing", 1);

  consumer->poll();
  clock.advance(99s);
  consumer->poll();

  EXPECT_THAT(ledger.lines(), IsEmpty());
}

TEST_F(ConsumingInOrder, WaitsForMessagesOfADeadProcessThroughARestart) {
  shop.publish();
  make_durable(2s);
  const auto consumer = make_consumer(defaults());
  consumer->poll();
  send_parcels(3);
  test::JetStream{server.url()}.take("SHOP", "billing", 2);
  server.kill();
  server.start_again();

  nats::InboxOperations inbox{ledger.store};
  const auto polls_until = [&](const std::function<bool()>& done) {
    return test::eventually([&] {
      try {
        consumer->poll();
      } catch (const BrokerFailed&) {
        // Its connection died with the broker.
      }
      return done();
    });
  };
  EXPECT_TRUE(polls_until([&] { return !inbox.held().empty(); })) << "the third message";
  // Beyond its patience the consumer asks the broker, which knows what it hasn't sent again.
  clock.advance(30s);
  EXPECT_TRUE(polls_until([&] { return ledger.lines().size() == 3; }));

  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped"));
  EXPECT_THAT(inbox.gaps(), IsEmpty());
}

TEST_F(ConsumingInOrder, MissesNothingThatWasThereBeforeTheOutbox) {
  auto store = sqlite::open(dir.file("older.db"));
  const auto ship = [](Store& into) {
    UnitOfWork unit{into};
    unit.append(StreamId::parse("parcel-7"), ExpectedVersion::any(), OrderShipped{"dhl"});
    unit.commit();
  };
  ship(store);
  ship(store);
  test::Shop older{dir.file("older.db"), server.url(), {.enable = Enable::from_now}};
  ship(older.store);
  ship(older.store);
  older.publish();
  const auto consumer = make_consumer(defaults());

  EXPECT_EQ(consumer->poll().handled, 2);

  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-7@3 order.shipped", "parcel-7@4 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

/// A consumer that doesn't get the beginning of the streams that it reads.
class ConsumingWithoutTheBeginning : public ConsumingInOrder {
 protected:
  ConsumingWithoutTheBeginning() {
    shop.place("old");
    shop.publish();
  }
  /// Three messages of a new stream, the first of which a process has that died.
  void expect_order(const nats::ConsumerOptions& with) {
    const auto consumer = make_consumer(with);
    consumer->poll();
    send_parcels(3);
    broker.take("SHOP", "billing", 1);
    consumer->poll();
    const auto meanwhile = ledger.lines();
    EXPECT_TRUE(test::eventually([&] {
      broker.give_back();
      consumer->poll();
      return ledger.lines().size() == 3;
    }));

    EXPECT_THAT(meanwhile, IsEmpty());
    EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                            "parcel-1@3 order.shipped"));
  }
};

TEST_F(ConsumingWithoutTheBeginning, KeepsTheOrderIfItBeganNow) {
  auto with = defaults();
  with.start = nats::ConsumerStart::now;
  expect_order(with);
}

TEST_F(ConsumingWithoutTheBeginning, KeepsTheOrderIfTheStreamDroppedItsFirstMessages) {
  broker.erase("SHOP", 1);
  expect_order(defaults());
}

TEST_F(ConsumingWithoutTheBeginning, HandlesFirstMessagesAtOnce) {
  send_parcels(1);
  auto with = defaults();
  with.start = nats::ConsumerStart::now;
  const auto consumer = make_consumer(with);
  consumer->poll();

  send_parcels(2);
  const nats::ConsumerTick tick = consumer->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 2}));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingWithoutTheBeginning, HandlesHeldMessagesOnceNoneEarlierIsInFlight) {
  send_parcels(1);
  auto with = defaults();
  with.start = nats::ConsumerStart::now;
  const auto consumer = make_consumer(with);
  consumer->poll();
  shop.place("other");
  send_parcels(2);
  broker.take("SHOP", "billing", 1);

  consumer->poll();
  const auto meanwhile = ledger.lines();
  EXPECT_TRUE(test::eventually([&] {
    broker.give_back();
    consumer->poll();
    clock.advance(1s);
    return ledger.lines().size() == 3;
  }));

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_THAT(ledger.lines(), ElementsAre("order-other@1 order.placed", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingWithoutTheBeginning, KeepsTheOrderIfAnotherHasAMessageFromTheMiddle) {
  broker.erase("SHOP", 1);
  const auto consumer = make_consumer(defaults());
  consumer->poll();
  shop.place("other");
  send_parcels(2);
  broker.take("SHOP", "billing", 1);
  test::JetStream another{server.url()};
  another.take("SHOP", "billing", 1);
  broker.give_back();

  EXPECT_TRUE(test::eventually([&] {
    consumer->poll();
    return !nats::InboxOperations{ledger.store}.held().empty();
  }));
  const auto meanwhile = ledger.lines();
  EXPECT_TRUE(test::eventually([&] {
    another.give_back();
    consumer->poll();
    return ledger.lines().size() == 3;
  }));

  EXPECT_THAT(meanwhile, ElementsAre("order-other@1 order.placed"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-other@1 order.placed", "parcel-1@1 order.shipped",
                                          "parcel-1@2 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingWithoutTheBeginning, ContinuesAfterADeletedMessage) {
  send_parcels(1);
  auto with = defaults();
  with.start = nats::ConsumerStart::now;
  const auto consumer = make_consumer(with);
  consumer->poll();
  for (const char* const key : {"first", "deleted"}) shop.place(key);
  send_parcels(2);
  broker.erase("SHOP", broker.last_sequence("SHOP") - 2);

  EXPECT_TRUE(test::eventually([&] {
    consumer->poll();
    clock.advance(1s);
    return ledger.lines().size() == 3;
  }));

  EXPECT_THAT(ledger.lines(), ElementsAre("order-first@1 order.placed", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

/// Six messages of a stream, three of them in a new JetStream stream after a resize.
class ConsumingAfterAResize : public ConsumingInOrder {
 protected:
  void resize() {
    send_parcels(3);
    OutboxOperations operations{shop.store};
    operations.resize(4);
    send_parcels(3);
    ASSERT_TRUE(test::eventually([&] {
      shop.publish();
      return operations.status().pending == 0;
    }));
    for (const std::string& name : broker.streams()) {
      if (name != "SHOP" && broker.count(name) > 0) after.stream = name;
    }
    ASSERT_NE(after.stream, before.stream);
  }
  void poll_for(nats::Consumer& consumer, std::chrono::seconds time) {
    for (auto left = time; left.count() > 0; left -= 5s) {
      total += consumer.poll();
      clock.advance(5s);
    }
  }
  /// As another consumer of this name did at some time.
  void read_stream_gone() {
    auto gone = defaults();
    gone.stream = "GONE";
    make_consumer(gone);
  }
  /// A message before one of SHOP is missing, for longer than the patience.
  void meet_a_gap() {
    send_parcels(3);
    broker.erase("SHOP", broker.last_sequence("SHOP") - 1);
    poll_for(*make_consumer(defaults()), 70s);
  }
  std::vector<std::string> known_streams() {
    return test::RawSqlite{sqlite::path(ledger.store)}.rows(
        "SELECT broker_stream FROM inbox_broker_streams ORDER BY broker_stream");
  }
  void start_with_orders() {
    for (int i = 0; i < orders; ++i) shop.place(std::to_string(i));
    resize();
  }
  /// The consumer of the old stream handles one order in all the time that `poll` takes.
  void expect_patience(const std::function<void()>& poll) {
    before.batch_size = 1;
    std::stop_source stop;
    nats::Consumer old{ledger.store, before};
    old.on<OrderPlaced>([&](Transaction&, const auto&) { stop.request_stop(); });
    old.on<OrderShipped>(Ledger::note<OrderShipped>);
    for (int i = 0; i < orders; ++i) {
      stop = {};
      old.run(stop.get_token());
      poll();
    }
    const auto meanwhile = ledger.lines();
    old.poll();
    poll();

    EXPECT_THAT(meanwhile, IsEmpty()) << "after 1000 s, and ten times its patience is 600 s";
    EXPECT_EQ(ledger.lines().size(), 6U);
    EXPECT_EQ(total.gaps, 0);
  }

  static constexpr int orders = 20;
  nats::ConsumerOptions before = defaults();
  nats::ConsumerOptions after = defaults();
  nats::ConsumerTick total;
};

TEST_F(ConsumingAfterAResize, WaitsForMessagesOfTheOldStream) {
  resize();
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 200s);
  const auto meanwhile = ledger.lines();
  old->poll();
  poll_for(*consumer, 5s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped", "parcel-1@4 order.shipped",
                                          "parcel-1@5 order.shipped", "parcel-1@6 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingAfterAResize, WaitsAsLongAsTheOldStreamGetsOn) {
  start_with_orders();
  const auto consumer = make_consumer(after);
  expect_patience([&] { poll_for(*consumer, 50s); });
}

TEST_F(ConsumingAfterAResize, WaitsAsLongThoughItIsStartedAgainAndAgain) {
  start_with_orders();
  expect_patience([&] { poll_for(*make_consumer(after), 50s); });
}

TEST_F(ConsumingAfterAResize, ContinuesAfterTenTimesItsPatienceForAStalledStream) {
  resize();
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 590s);
  const auto meanwhile = ledger.lines();
  poll_for(*consumer, 20s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines().size(), 3U);
}

TEST_F(ConsumingAfterAResize, WaitsForNoStreamThatWasMadeAgainAndIsEmpty) {
  resize();
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);
  // The patience is 60 s: then it asks how far the old stream is.
  poll_for(*consumer, 70s);
  const auto meanwhile = ledger.lines();

  broker.delete_stream("SHOP");
  broker.make_stream("SHOP", "elsewhere.>");
  poll_for(*consumer, 10s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(total.gaps, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@4 order.shipped", "parcel-1@5 order.shipped",
                                          "parcel-1@6 order.shipped"));
}

/// Whoever made it at the broker, a consumer that is started makes it again.
TEST_F(ConsumingAfterAResize, WaitsForAStreamWhoseConsumerWasDeletedUntilItIsEmpty) {
  resize();
  { const auto stopped = make_consumer(before); }
  broker.make_consumer("SHOP", "billing");
  broker.delete_consumer("SHOP", "billing");
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 590s);
  const auto meanwhile = ledger.lines();
  broker.purge("SHOP");
  poll_for(*consumer, 5s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines().size(), 3U);
}

TEST_F(ConsumingAfterAResize, WaitsForNoStreamThatIsSettledOrGone) {
  resize();
  read_stream_gone();
  make_consumer(before)->poll();
  broker.erase(after.stream, 1);
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 70s);

  EXPECT_EQ(total.gaps, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped", "parcel-1@5 order.shipped",
                                          "parcel-1@6 order.shipped"));
}

TEST_F(ConsumingInOrder, EndsAGapThoughEachProcessLivesShortly) {
  send_parcels(3);
  broker.erase("SHOP", 2);

  std::vector<std::string> after_two_minutes;
  for (int i = 0; i < 20; ++i) {
    make_consumer(defaults())->poll();
    clock.advance(55s);
    if (i == 1) after_two_minutes = ledger.lines();
  }

  EXPECT_THAT(after_two_minutes, ElementsAre("parcel-1@1 order.shipped"));
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@3 order.shipped"));
}

TEST_F(ConsumingAfterAResize, ForgetsAStreamThatHasBeenGoneForItsRetention) {
  read_stream_gone();
  meet_a_gap();

  clock.advance(167h);
  meet_a_gap();
  const auto meanwhile = known_streams();
  clock.advance(1h);
  meet_a_gap();

  EXPECT_THAT(meanwhile, ElementsAre("GONE", "SHOP"));
  EXPECT_THAT(known_streams(), ElementsAre("SHOP"));
  EXPECT_EQ(total.gaps, 3);
}

TEST_F(ConsumingAfterAResize, KeepsAStreamInMindThatWasMadeAgainOrIsReadAgain) {
  read_stream_gone();
  meet_a_gap();
  broker.make_stream("GONE", "gone.>");
  meet_a_gap();
  broker.delete_stream("GONE");
  clock.advance(168h);
  meet_a_gap();
  EXPECT_THAT(known_streams(), ElementsAre("GONE", "SHOP"));

  clock.advance(168h);
  read_stream_gone();
  meet_a_gap();
  EXPECT_THAT(known_streams(), ElementsAre("GONE", "SHOP"));
}

TEST_F(ConsumingInOrder, RefusesLessPatienceThanTheBrokerHas) {
  shop.publish();
  make_durable(100s);
  auto with = defaults();
  with.gap_patience = 60s;
  const auto consumer = make_consumer(with);

  EXPECT_THAT(
      [&] { consumer->poll(); },
      ThrowsMessage<UsageError>(HasSubstr(
          "ack_wait is 100000 ms and should be less than the option gap_patience, 60000 ms")));
}

}  // namespace
}  // namespace stela::consumer_order_test
