// Messages of one stream are handled in order, whatever the broker loses and keeps.
#include "nats/shop_at_broker.hpp"
#include "support/messages.hpp"
#include "support/recording_sinks.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::consumer_order_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::Contains;
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
  static std::vector<std::string> parcels(int first, int last) {
    std::vector<std::string> lines;
    for (int i = first; i <= last; ++i) {
      lines.push_back("parcel-1@" + std::to_string(i) + " order.shipped");
    }
    return lines;
  }

  testing::ManualClock clock;
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log, .clock = &clock}};
};

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

  EXPECT_EQ(consumer->run_once().handled, 2);

  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-7@3 order.shipped", "parcel-7@4 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(ConsumingInOrder, GoesOnBehindItsPositionThoughTheBrokerForgetsItsReader) {
  send_parcels(2);
  const auto consumer = make_consumer(defaults());
  consumer->run_once();
  for (const std::string& reader : broker.consumers("SHOP")) broker.delete_consumer("SHOP", reader);
  send_parcels(2);

  EXPECT_TRUE(test::eventually([&] {
    consumer->run_once();
    return ledger.lines().size() == 4;
  }));

  EXPECT_EQ(ledger.lines(), parcels(1, 4));
}

TEST_F(ConsumingInOrder, BeginsAgainInAStreamThatWasMadeAgainAndKnowsWhatItHandled) {
  send_parcels(3);
  make_consumer(defaults())->run_once();
  const auto stored = broker.messages("SHOP");
  broker.delete_stream("SHOP");
  broker.make_stream("SHOP", "shop.>");
  OutboxOperations operations{shop.store, {.who = "ann"}};
  operations.republish({.from = GlobalSequence{1}, .to = GlobalSequence{3}});
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    if (operations.status().stopped > 0) operations.adopt(PartitionId{});
    return operations.status().redeliveries == 0;
  }));
  send_parcels(1);

  const nats::ConsumerTick tick = make_consumer(defaults())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .duplicates = 3}));
  EXPECT_EQ(ledger.lines(), parcels(1, 4));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.stream_made_again")));
}

TEST_F(ConsumingInOrder, NoticesAStreamThatIsMadeAgainWhileItReads) {
  send_parcels(3);
  {
    const auto consumer = make_consumer(defaults());
    const std::jthread reading{[&](std::stop_token stop) { consumer->run(std::move(stop)); }};
    ASSERT_TRUE(test::eventually([&] { return ledger.lines().size() == 3; }));

    broker.delete_stream("SHOP");
    broker.make_stream("SHOP", "shop.>");
    OutboxOperations operations{shop.store, {.who = "ann"}};
    shop.send_parcel();
    EXPECT_TRUE(test::eventually([&] {
      shop.publish();
      if (operations.status().stopped > 0) operations.adopt(PartitionId{});
      return ledger.lines().size() == 4;
    }));
  }

  EXPECT_EQ(ledger.lines(), parcels(1, 4));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.stream_made_again")));
}

/// The broker's files were restored, and the relay went on behind their end while nobody looked.
TEST_F(ConsumingInOrder, HandlesWhatStandsWhereItHadReadOtherMessages) {
  send_parcels(3);
  { make_consumer(defaults())->run_once(); }
  test::RawSqlite{sqlite::path(ledger.store)}.run(
      "UPDATE inbox_readers SET position = 5, position_time = position_time + 7");
  for (int i = 0; i < 4; ++i) shop.send_parcel("parcel-2");
  shop.publish();

  const nats::ConsumerTick tick = make_consumer(defaults())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 4, .duplicates = 3}));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.stream_went_back")));
}

TEST_F(ConsumingInOrder, ReadsFromTheBeginningIfTheStreamEndsBeforeItsPosition) {
  send_parcels(3);
  { make_consumer(defaults())->run_once(); }
  test::RawSqlite{sqlite::path(ledger.store)}.run("UPDATE inbox_readers SET position = 100");
  for (int i = 0; i < 4; ++i) shop.send_parcel("parcel-2");
  shop.publish();

  EXPECT_EQ(make_consumer(defaults())->run_once(),
            (nats::ConsumerTick{.handled = 4, .duplicates = 3}));
}

TEST_F(ConsumingInOrder, WaitsNoLongerForARetryBecauseAClockIsSetBack) {
  send_parcels(1);
  auto with = defaults();
  with.retry_backoff = 100ms;
  with.retry_backoff_max = 1'000ms;
  nats::Consumer consumer{ledger.store, with};
  bool fails = true;
  consumer.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
    if (std::exchange(fails, false)) throw std::runtime_error{"not yet"};
    Ledger::note(transaction, shipped);
  });
  EXPECT_EQ(consumer.run_once().failed, 1);

  clock.advance(-1h);

  EXPECT_EQ(consumer.run_once().handled, 1);
}

TEST_F(ConsumingInOrder, MissesNothingOfAPurgedStreamButWhatWasInIt) {
  send_parcels(2);
  make_consumer(defaults())->run_once();
  send_parcels(2);
  broker.purge("SHOP");
  send_parcels(1);

  const nats::ConsumerTick tick = make_consumer(defaults())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .gaps = 1}));
  const auto gaps = nats::InboxOperations{ledger.store}.gaps();
  EXPECT_EQ(gaps.at(0).after.value(), 2);
  EXPECT_EQ(gaps.at(0).missing.value(), 4);
}

TEST_F(ConsumingInOrder, RefusesAStreamThatDropsWhatWasRead) {
  broker.make_stream("WORK", "work.>",
                     [](jsStreamConfig& config) { config.Retention = js_WorkQueuePolicy; });
  auto with = defaults();
  with.stream = "WORK";
  const auto consumer = make_consumer(with);

  EXPECT_THAT([&] { consumer->run_once(); },
              ThrowsMessage<UsageError>(HasSubstr("make a stream with limits retention that "
                                                  "sources this one")));
}

/// The consumer before it ended without a word: its lease runs out.
TEST_F(ConsumingInOrder, IsTakenOverWhenTheLeaseOfTheOneBeforeIsOver) {
  send_parcels(2);
  const auto consumer = make_consumer(defaults());
  test::RawSqlite{sqlite::path(ledger.store)}.run(
      "UPDATE inbox_readers SET owner = 'somebody', epoch = 7, lease_ttl = 15000000, lease_until "
      "= " +
      std::to_string((clock.now() + 15s).time_since_epoch().count()));

  const nats::ConsumerTick meanwhile = consumer->run_once();
  clock.advance(14s);
  consumer->run_once();
  const auto before = ledger.lines();
  clock.advance(2s);
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_EQ(meanwhile.reader, "somebody");
  EXPECT_THAT(before, IsEmpty());
  EXPECT_EQ(tick.handled, 2);
  EXPECT_EQ(tick.reader, "");
}

TEST_F(ConsumingInOrder, IsLeftToAProcessThatReachesTheBroker) {
  send_parcels(2);
  test::TcpProxy line{server.port()};
  auto through_the_line = defaults();
  through_the_line.url = line.url();
  const auto cut_off = make_consumer(through_the_line);
  EXPECT_EQ(cut_off->run_once().handled, 2);
  line.refuse(true);
  line.cut();
  EXPECT_TRUE(test::eventually([&] {
    return test::message_of<BrokerFailed>([&] { cut_off->run_once(); }) != "nothing was thrown";
  }));
  send_parcels(1);

  const nats::ConsumerTick tick = make_consumer(defaults())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
}

/// What it was about to commit isn't committed.
TEST_F(ConsumingInOrder, LosesItsLeaseInTheMiddleOfAHandlerAndWritesNothing) {
  send_parcels(1);
  nats::Consumer slow{ledger.store, defaults()};
  bool is_first = true;
  slow.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
    Ledger::note(transaction, shipped);
    if (std::exchange(is_first, false)) {
      test::RawSqlite{sqlite::handle(transaction)}.run(
          "UPDATE inbox_readers SET epoch = epoch + 1");
    }
  });

  const nats::ConsumerTick lost = slow.run_once();
  const auto meanwhile = ledger.lines();
  slow.run_once();

  EXPECT_EQ(lost, nats::ConsumerTick{});
  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(ledger.lines(), parcels(1, 1));
}

/// Six messages of a stream, three of them in a new JetStream stream after a resize.
class ConsumingAfterAResize : public ConsumingInOrder {
 protected:
  void SetUp() override {
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
      total += consumer.run_once();
      clock.advance(5s);
    }
  }

  nats::ConsumerOptions before = defaults();
  nats::ConsumerOptions after = defaults();
  nats::ConsumerTick total;
};

TEST_F(ConsumingAfterAResize, WaitsForMessagesOfTheOldStream) {
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 25s);
  const auto meanwhile = ledger.lines();
  old->run_once();
  poll_for(*consumer, 5s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(ledger.lines(), parcels(1, 6));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
  EXPECT_THAT(log.entries(), Contains(HasSubstr("info consumer.waits_for_partition")));
}

TEST_F(ConsumingAfterAResize, CountsNoAttemptWhileItWaits) {
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);
  for (int i = 0; i <= 2 * after.max_attempts; ++i) {
    total += consumer->run_once();
    // As a process that was killed leaves it.
    test::RawSqlite{sqlite::path(ledger.store)}.run(
        "UPDATE inbox_readers SET owner = 'killed', lease_until = 1 WHERE broker_stream = '" +
        after.stream + "'");
  }

  old->run_once();
  total += consumer->run_once();

  EXPECT_EQ(total.parked, 0);
  EXPECT_EQ(ledger.lines(), parcels(1, 6));
}

TEST_F(ConsumingAfterAResize, WaitsWithAFilterToo) {
  before.filter_subject = after.filter_subject = ">";
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);

  poll_for(*consumer, 25s);
  const auto meanwhile = ledger.lines();
  old->run_once();
  poll_for(*consumer, 5s);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(ledger.lines(), parcels(1, 6));
}

TEST_F(ConsumingAfterAResize, WaitsAsLongAsTheOldStreamGetsOn) {
  before.batch_size = 1;
  nats::Consumer old{ledger.store, before};
  std::stop_source stop;
  old.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
    Ledger::note(transaction, shipped);
    stop.request_stop();
  });
  const auto consumer = make_consumer(after);
  for (int i = 1; i <= 3; ++i) {
    poll_for(*consumer, 25s);
    EXPECT_EQ(ledger.lines(), parcels(1, i - 1)) << "after " << 25 * i << " s";
    stop = {};
    old.run(stop.get_token());
  }

  poll_for(*consumer, 5s);

  EXPECT_EQ(ledger.lines(), parcels(1, 6));
  EXPECT_EQ(total.gaps, 0);
}

TEST_F(ConsumingAfterAResize, WaitsForAStreamThatNobodyReadsUntilItIsForgotten) {
  { const auto old = make_consumer(before); }
  const auto consumer = make_consumer(after);
  nats::InboxOperations inbox{ledger.store};

  poll_for(*consumer, 600s);
  const auto meanwhile = ledger.lines();
  const auto readers = inbox.status().at(0).readers;
  inbox.forget("billing", "SHOP");
  total += consumer->run_once();

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_TRUE(readers.at(1).is_waiting);
  EXPECT_THAT(readers.at(1).error, HasSubstr("it waits for their readers: 'SHOP' up to 3"));
  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines(), parcels(4, 6));
}

TEST_F(ConsumingAfterAResize, NotesWhatIsMissingInBothStreams) {
  before.batch_size = 1;
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);
  broker.erase("SHOP", 2);
  broker.erase(after.stream, 1);

  for (int i = 0; i < 5; ++i) {
    total += consumer->run_once();
    total += old->run_once();
  }

  EXPECT_EQ(total.gaps, 2);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@3 order.shipped",
                                          "parcel-1@5 order.shipped", "parcel-1@6 order.shipped"));
}

/// What comes before is awaited once, also if the process is another one then.
TEST_F(ConsumingAfterAResize, NotesALaterGapAtOnceThoughOthersAreBehind) {
  make_consumer(before)->run_once();
  make_consumer(after)->run_once();
  shop.send_parcel("order-of-another-partition");
  send_parcels(3);
  for (const std::string& name : broker.streams()) {
    auto other = defaults();
    other.stream = name;
    make_consumer(other);
  }
  broker.erase(after.stream, broker.last_sequence(after.stream) - 1);

  total += make_consumer(after)->run_once();

  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines().back(), "parcel-1@9 order.shipped");
}

TEST_F(ConsumingAfterAResize, WaitsForNoStreamThatIsGone) {
  const auto old = make_consumer(before);
  broker.delete_stream("SHOP");

  total += make_consumer(after)->run_once();

  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines(), parcels(4, 6));
}

TEST_F(ConsumingAfterAResize, WaitsNoLongerForAStreamThatIsEmptied) {
  const auto old = make_consumer(before);
  const auto consumer = make_consumer(after);
  poll_for(*consumer, 5s);
  EXPECT_EQ(total.handled, 0);

  broker.purge("SHOP");
  poll_for(*consumer, 5s);

  EXPECT_EQ(total.gaps, 1);
  EXPECT_EQ(ledger.lines(), parcels(4, 6));
}

/// The last messages of the old stream never come to a reader with a filter.
TEST_F(ConsumingInOrder, WaitsAfterAResizeForNothingThatAFilterLeavesOut) {
  auto before = defaults();
  before.filter_subject = "shop.order.shipped";
  send_parcels(1);
  shop.place("7");
  shop.publish();
  OutboxOperations operations{shop.store};
  operations.resize(4);
  send_parcels(1);
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().pending == 0;
  }));
  const std::string label = PartitionId::of("parcel-1", 4).label();
  auto after = defaults();
  after.stream = "SHOP_" + label;
  after.filter_subject = "shop_" + label + ".order.shipped";

  make_consumer(before)->run_once();
  make_consumer(after)->run_once();

  EXPECT_EQ(ledger.lines(), parcels(1, 2));
}

/// Each stream has messages of several generations, and each reader waits for the others.
TEST_F(ConsumingInOrder, HandlesEachStreamInOrderOverSeveralResizes) {
  OutboxOperations operations{shop.store};
  std::vector<std::string> expected;
  for (const int count : {4, 2, 4, 1}) {
    for (int parcel = 1; parcel <= 9; ++parcel) {
      const std::string stream = "parcel-" + std::to_string(parcel);
      shop.send_parcel(stream);
      expected.push_back(stream);
    }
    operations.resize(count);
  }
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().pending == 0;
  }));
  std::vector<std::unique_ptr<nats::Consumer>> consumers;
  for (const std::string& name : broker.streams()) {
    auto with = defaults();
    with.stream = name;
    consumers.push_back(make_consumer(with));
  }

  nats::ConsumerTick total;
  ASSERT_TRUE(test::eventually([&] {
    for (const auto& consumer : consumers) total += consumer->run_once();
    return total.handled == std::ssize(expected);
  }));

  std::map<std::string, int> versions;
  for (const std::string& line : ledger.lines()) {
    const std::string stream = line.substr(0, line.find('@'));
    EXPECT_EQ(line, stream + '@' + std::to_string(++versions[stream]) + " order.shipped");
  }
  EXPECT_EQ(total, (nats::ConsumerTick{.handled = std::ssize(expected)}));
}

/// Between a message and the question where other streams end, the broker may fall silent.
TEST_F(ConsumingInOrder, AsksOnceMoreWhereOtherStreamsEnd) {
  OutboxOperations operations{shop.store};
  for (const int count : {4, 1}) {
    shop.send_parcel();
    operations.resize(count);
  }
  shop.send_parcel();
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().pending == 0;
  }));
  auto between = defaults();
  between.stream = "SHOP_" + PartitionId::of("parcel-1", 4).label();
  const auto other = make_consumer(between);
  auto with = defaults();
  with.connect_timeout = 200ms;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
    Ledger::note(transaction, shipped);
    if (shipped.version().value() == 1) server.pause();
  });

  EXPECT_THROW(consumer.run_once(), BrokerFailed);
  server.resume();
  consumer.run_once();
  EXPECT_EQ(ledger.lines(), parcels(1, 1));
  other->run_once();
  consumer.run_once();

  EXPECT_EQ(ledger.lines(), parcels(1, 3));
}

}  // namespace
}  // namespace stela::consumer_order_test
