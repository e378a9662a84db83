#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/framework/not_found.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

namespace stela::consumer_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;
using ::testing::SizeIs;

/// What somebody else takes an OrderPlaced for.
struct OtherOrderPlaced {
  static constexpr EventType event_type{"order.placed", 1, should_publish};
  bool is_gift = false;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(is_gift));
  }
};

class Consuming : public ::testing::Test {
 protected:
  nats::ConsumerOptions options(const std::string& name = "billing") const {
    return {.url = server.url(),
            .name = name,
            .stream = "SHOP",
            .ack_wait = 1'000ms,
            .retry_backoff = 20ms,
            .retry_backoff_max = 50ms,
            .max_attempts = 3,
            .gap_patience = 1'100ms};
  }

  /// Notes what it handles in the ledger.
  std::unique_ptr<nats::Consumer> make_consumer(const nats::ConsumerOptions& with) {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
    consumer->on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
    return consumer;
  }

  /// Polls until the ledger has so many lines.
  bool reaches(nats::Consumer& consumer, std::size_t lines) {
    return test::eventually([&] {
      total += consumer.poll();
      return ledger.lines().size() >= lines;
    });
  }

  test::TempDir dir;
  test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log}};
  nats::ConsumerTick total;
};

TEST_F(Consuming, HandlesEachPublishedEventInOrder) {
  shop.place("1");
  shop.note("1");
  shop.ship("1");
  shop.place("2");
  shop.publish();
  const auto consumer = make_consumer(options());

  const nats::ConsumerTick tick = consumer->poll();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@3 order.shipped",
                                          "order-2@1 order.placed"));
  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 3}));
  EXPECT_EQ(consumer->poll(), nats::ConsumerTick{});
}

TEST_F(Consuming, PutsTheHandlersRowsAndTheInboxIntoOneTransaction) {
  shop.place("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  int calls = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (++calls <= 2) throw std::runtime_error{"printer on fire"};
  });

  const bool handled = reaches(consumer, 1);

  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
  EXPECT_THAT(test::RawSqlite{sqlite::path(ledger.store)}.rows("SELECT * FROM inbox_failures"),
              IsEmpty());
}

TEST_F(Consuming, DropsRedeliveries) {
  shop.place("1");
  shop.publish();
  make_consumer(options())->poll();
  const auto other_at_the_broker = [&] {
    // Another durable consumer of the same inbox: it gets everything from the beginning.
    test::RawSqlite raw{sqlite::path(ledger.store)};
    raw.run("UPDATE inbox_consumers SET name = 'billing2'");
  };
  other_at_the_broker();

  const nats::ConsumerTick tick = make_consumer(options("billing2"))->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.duplicates = 1}));
  EXPECT_THAT(ledger.lines(), SizeIs(1));
}

TEST_F(Consuming, DropsByVersionAMessageThatTheInboxHasForgotten) {
  shop.place("1");
  shop.publish();
  make_consumer(options())->poll();
  test::RawSqlite raw{sqlite::path(ledger.store)};
  raw.run("DELETE FROM inbox_handled");
  raw.run("UPDATE inbox_consumers SET name = 'billing2'");

  const nats::ConsumerTick tick = make_consumer(options("billing2"))->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.duplicates = 1}));
}

TEST_F(Consuming, HoldsTheStreamOfAFailingMessageAndLetsOthersPass) {
  shop.place("1");
  shop.ship("1");
  shop.place("2");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  bool fails = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (fails && placed.stream().key() == "1") throw std::runtime_error{"not yet"};
    Ledger::note(transaction, placed);
  });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);

  ASSERT_TRUE(reaches(consumer, 1));
  const auto meanwhile = ledger.lines();
  fails = false;
  const bool handled = reaches(consumer, 3);

  EXPECT_TRUE(handled);
  EXPECT_THAT(meanwhile, ElementsAre("order-2@1 order.placed"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed", "order-1@1 order.placed",
                                          "order-1@2 order.shipped"));
  EXPECT_GE(total.held, 1);
}

TEST_F(Consuming, MakesPoisonADeadLetterAndRetriesItOnRequest) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  bool fails = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (fails) throw std::runtime_error{"no such customer"};
    Ledger::note(transaction, placed);
  });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  nats::InboxOperations inbox{ledger.store};

  EXPECT_TRUE(reaches(consumer, 1));
  const auto letters = inbox.dead_letters();
  fails = false;
  inbox.retry(letters.at(0).number);
  const nats::ConsumerTick after = consumer.poll();

  EXPECT_EQ(total.dead, 1);
  EXPECT_EQ(total.failed, 2);
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].consumer, "billing");
  EXPECT_EQ(letters[0].attempts, 3);
  EXPECT_EQ(letters[0].error, "no such customer");
  EXPECT_EQ(letters[0].headers.at("ce-type"), "order.placed");
  EXPECT_EQ(letters[0].payload, R"({"customer":"jane","total_cents":100})");
  EXPECT_EQ(after.revived, 1);
  EXPECT_THAT(inbox.dead_letters(), IsEmpty());
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped", "order-1@1 order.placed"));
}

TEST_F(Consuming, KeepsADeadLetterWhoseRetryFailsAndForgetsOneThatIsDiscarded) {
  shop.place("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>(
      [](Transaction&, const auto&) { throw std::runtime_error{"still no such customer"}; });
  nats::InboxOperations inbox{ledger.store};
  consumer.poll();
  const std::int64_t letter = inbox.dead_letters().at(0).number;

  inbox.retry(letter);
  consumer.poll();
  const auto after_retry = inbox.dead_letters();
  inbox.discard(letter);

  ASSERT_THAT(after_retry, SizeIs(1));
  EXPECT_EQ(after_retry[0].attempts, 2);
  EXPECT_THAT(log.entries(),
              Contains("error consumer.dead_letter consumer=billing stream=SHOP letter=1 "
                       "attempts=2 problem=still no such customer"));
  EXPECT_FALSE(after_retry[0].is_to_retry);
  EXPECT_THAT(inbox.dead_letters(), IsEmpty());
  EXPECT_THROW(inbox.retry(letter), NotFound);
  EXPECT_THROW(inbox.discard(letter), NotFound);
}

TEST_F(Consuming, MakesAnUndecodableMessageADeadLetterAtOnce) {
  shop.place("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  consumer.on<OtherOrderPlaced>([](Transaction&, const auto&) {});

  const nats::ConsumerTick tick = consumer.poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.dead = 1}));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.dead_letters().at(0).error,
              HasSubstr("event 1 (order.placed v1, version 1 of 'order-1') is corrupt"));
}

TEST_F(Consuming, MakesAForeignMessageADeadLetter) {
  shop.place("1");
  shop.publish();
  test::JetStream{server.url()}.publish("shop.hello", "there");

  const nats::ConsumerTick tick = make_consumer(options())->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .dead = 1}));
  const auto letter = nats::InboxOperations{ledger.store}.dead_letters().at(0);
  EXPECT_EQ(letter.payload, "there");
  EXPECT_EQ(letter.subject, "shop.hello");
  EXPECT_THAT(letter.error, HasSubstr("header 'ce-specversion' is missing"));
}

TEST_F(Consuming, NamesTheEventAsTheCauseOfItsHandlersEvents) {
  {
    const ContextScope scope{
        {.correlation_id = "checkout-7",
         .actor = "Zoë",
         .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
         .headers = {{"tenant", "50 %"}}}};
    shop.place("1");
  }
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  consumer.on<OrderPlaced>([](Transaction& transaction, const auto&) {
    UnitOfWork unit{transaction};
    unit.append(StreamId::parse("invoice-1"), ExpectedVersion::none(), OrderShipped{"post"});
    unit.commit();
  });

  consumer.poll();

  std::optional<Context> recorded;
  for (const StoredEvent& event : ledger.store.read_all()) recorded = event.context();
  EventId cause;
  for (const StoredEvent& event : shop.store.read_all()) cause = event.id;
  ASSERT_TRUE(recorded.has_value());
  EXPECT_EQ(recorded->correlation_id, "checkout-7");
  EXPECT_EQ(recorded->causation_id, cause);
  EXPECT_EQ(recorded->actor, "Zoë");
  EXPECT_EQ(recorded->traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_THAT(recorded->headers, ElementsAre(std::pair{"tenant", "50 %"}));
}

TEST_F(Consuming, WaitsForAMissingMessageThenReportsTheGapAndContinues) {
  for (int i = 0; i < 4; ++i) shop.send_parcel();
  shop.publish();
  test::JetStream{server.url()}.erase("SHOP", 2);
  const auto consumer = make_consumer(options());
  nats::InboxOperations inbox{ledger.store};

  total += consumer->poll();
  const auto meanwhile = ledger.lines();
  const bool went_on = reaches(*consumer, 3);

  EXPECT_THAT(meanwhile, ElementsAre("parcel-1@1 order.shipped"));
  EXPECT_TRUE(went_on);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@3 order.shipped",
                                          "parcel-1@4 order.shipped"));
  EXPECT_EQ(total.gaps, 1);
  const auto gaps = inbox.gaps();
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps[0].stream, "parcel-1");
  EXPECT_EQ(gaps[0].after.value(), 1);
  EXPECT_EQ(gaps[0].missing.value(), 2);
  EXPECT_EQ(gaps[0].source, shop.store.id().to_string());
}

TEST_F(Consuming, NotesAGapAtTheBeginningOfAStream) {
  shop.send_parcel("parcel-1");
  for (int i = 0; i < 2; ++i) shop.send_parcel("parcel-2");
  shop.publish();
  test::JetStream{server.url()}.erase("SHOP", 2);
  const auto consumer = make_consumer(options());

  EXPECT_TRUE(reaches(*consumer, 2));

  EXPECT_EQ(total.gaps, 1);
  const auto gaps = nats::InboxOperations{ledger.store}.gaps();
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps[0].stream, "parcel-2");
  EXPECT_EQ(gaps[0].after.value(), 0);
  EXPECT_EQ(gaps[0].missing.value(), 1);
}

TEST_F(Consuming, HandlesAMissedMessageThatArrivesLate) {
  for (int i = 0; i < 3; ++i) shop.send_parcel();
  shop.publish();
  make_consumer(options())->poll();
  // As if the first two had been missing when the third was handled.
  test::RawSqlite raw{sqlite::path(ledger.store)};
  raw.run("DELETE FROM inbox_handled");
  raw.run(
      "INSERT INTO inbox_gaps SELECT 1, consumer, source, stream, 0, 3, 2, 0 "
      "FROM inbox_positions");
  raw.run("UPDATE inbox_consumers SET name = 'billing2'");

  const nats::ConsumerTick tick = make_consumer(options("billing2"))->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 2, .duplicates = 1}));
}

TEST_F(Consuming, BeginsWithNewMessagesOnRequest) {
  shop.send_parcel();
  shop.publish();
  auto with = options();
  with.start = nats::ConsumerStart::now;
  const auto consumer = make_consumer(with);
  consumer->poll();

  shop.send_parcel();
  shop.publish();
  const nats::ConsumerTick tick = consumer->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@2 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

TEST_F(Consuming, IgnoresEventsWithoutAHandlerButKnowsThem) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);

  const nats::ConsumerTick tick = consumer.poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .ignored = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
}

TEST_F(Consuming, TakesOnlyMessagesOfItsFilter) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = options();
  with.filter_subject = "shop.order.shipped";

  const nats::ConsumerTick tick = make_consumer(with)->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
}

TEST_F(Consuming, SharesTheWorkAmongConsumersOfOneName) {
  for (int i = 0; i < 200; ++i) shop.place(std::to_string(i));
  shop.publish();
  Ledger second_ledger{sqlite::path(ledger.store)};
  auto with = options();
  with.batch_size = 10;
  const auto one = make_consumer(with);
  nats::Consumer two{second_ledger.store, with};
  two.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  nats::ConsumerTick by_one;
  nats::ConsumerTick by_two;
  one->on_tick([&](const nats::ConsumerTick& tick) { by_one += tick; });
  two.on_tick([&](const nats::ConsumerTick& tick) { by_two += tick; });

  {
    std::jthread first{[&](std::stop_token stop) { one->run(stop); }};
    std::jthread second{[&](std::stop_token stop) { two.run(stop); }};
    EXPECT_TRUE(test::eventually([&] { return ledger.lines().size() == 200; }));
  }

  EXPECT_EQ(by_one.handled + by_two.handled, 200);
  EXPECT_THAT(test::RawSqlite{sqlite::path(ledger.store)}.rows(
                  "SELECT line FROM ledger GROUP BY line HAVING count(*) > 1"),
              IsEmpty());
}

TEST_F(Consuming, IsQuickWithAStreamThatComesTheLastMessageFirst) {
  shop.place("1");
  shop.publish();
  make_consumer(options())->poll();
  for (int i = 0; i < 20; ++i) shop.send_parcel();
  shop.publish();
  test::JetStream{server.url()}.give_back_reversed("SHOP", "billing", 20);

  const nats::ConsumerTick tick = make_consumer(options())->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 20}));
}

TEST_F(Consuming, GivesRequestedMessagesBackWhenItStops) {
  for (int i = 0; i < 60; ++i) shop.place(std::to_string(i));
  shop.publish();
  auto with = options();
  with.batch_size = 10;
  // Whatever it keeps to itself comes too late for this test.
  with.ack_wait = 600'000ms;
  with.gap_patience = {};
  std::stop_source stop;
  const auto one = make_consumer(with);
  one->on_tick([&](const nats::ConsumerTick& tick) {
    total += tick;
    if (total.handled >= 30) stop.request_stop();
  });
  one->run(stop.get_token());
  ASSERT_LT(ledger.lines().size(), 60u);

  EXPECT_TRUE(reaches(*make_consumer(with), 60));

  EXPECT_EQ(total.handled, 60);
}

TEST_F(Consuming, RefusesADurableConsumerThatIsAnother) {
  shop.publish();
  auto with = options();
  with.filter_subject = "shop.order.placed";
  make_consumer(with)->poll();

  const auto unfiltered = make_consumer(options());

  EXPECT_THAT([&] { unfiltered->poll(); },
              ::testing::ThrowsMessage<UsageError>(
                  HasSubstr("filter_subject is 'shop.order.placed' and should be ''")));
}

TEST_F(Consuming, ForgetsIdsOlderThanItsRetention) {
  shop.place("1");
  shop.publish();
  make_consumer(options())->poll();
  test::RawSqlite raw{sqlite::path(ledger.store)};
  raw.run("UPDATE inbox_handled SET handled_at = handled_at - 169 * 3600000000");
  const auto first = raw.rows("SELECT * FROM inbox_handled");

  make_consumer(options())->poll();
  EXPECT_EQ(raw.rows("SELECT * FROM inbox_handled"), first) << "nothing came after it";
  shop.place("2");
  shop.publish();
  make_consumer(options())->poll();
  make_consumer(options())->poll();

  EXPECT_THAT(raw.rows("SELECT * FROM inbox_handled"), AllOf(SizeIs(1), Ne(first)));
}

TEST(ConsumerOptions, AreRefusedWithTheRuleTheyBreak) {
  const auto problem = [](nats::ConsumerOptions options) {
    try {
      nats::check(options);
    } catch (const UsageError& e) {
      return std::string{e.what()};
    }
    return std::string{"none"};
  };
  EXPECT_EQ(problem({.name = "billing"}), "none");
  EXPECT_THAT(problem({.name = ""}), HasSubstr("name is 1 to 128 letters"));
  EXPECT_THAT(problem({.name = "a.b"}), HasSubstr("not 'a.b'"));
  EXPECT_THAT(problem({.name = "a", .batch_size = 0}),
              HasSubstr("batch_size is 0; it must be 1 to 10000"));
  EXPECT_THAT(problem({.name = "a", .max_ack_pending = 10}), HasSubstr("max_ack_pending"));
  EXPECT_THAT(problem({.name = "a", .ack_wait = 30'000ms, .gap_patience = 30'000ms}),
              HasSubstr("gap_patience is at most ack_wait"));
  EXPECT_THAT(problem({.name = "a", .gap_patience = 1'000ms}), HasSubstr("gap_patience"));
  EXPECT_EQ(problem({.name = "a", .gap_patience = 1'001ms}), "none");
  for (const char* const filter : {"$JS.>", "$JS", "$SYS.>", "$.x", "_INBOX", "_INBOX.>"}) {
    EXPECT_THAT(problem({.name = "a", .filter_subject = filter}),
                AllOf(HasSubstr(filter), HasSubstr("the server's own"), HasSubstr("shop.order")));
  }
  for (const char* const filter : {"shop.$x", "shop._INBOX", "_INBOX_OF_SHOP.>", "*.placed", ">"}) {
    EXPECT_EQ(problem({.name = "a", .filter_subject = filter}), "none") << filter;
  }
  EXPECT_THAT(problem({.url = "nats://u:hunter2@h", .name = "a"}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(problem({.url = "nats://u:hunter2@h", .name = "a"}), HasSubstr("name files"));
}

}  // namespace
}  // namespace stela::consumer_test
