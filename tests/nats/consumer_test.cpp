#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
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
            .retry_backoff = 20ms,
            .retry_backoff_max = 50ms,
            .max_attempts = 3};
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
      total += consumer.run_once();
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

  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@3 order.shipped",
                                          "order-2@1 order.placed"));
  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 3}));
  EXPECT_EQ(consumer->run_once(), nats::ConsumerTick{});
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
  EXPECT_EQ(test::RawSqlite{sqlite::path(ledger.store)}.integer(
                "SELECT failing + attempts FROM inbox_readers"),
            0);
}

TEST_F(Consuming, KnowsWhatComesAgain) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  make_consumer(options())->run_once();
  nats::InboxOperations{ledger.store}.move("billing", "SHOP", 0);

  const nats::ConsumerTick tick = make_consumer(options())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.duplicates = 2}));
  EXPECT_THAT(ledger.lines(), SizeIs(2));
}

TEST_F(Consuming, TriesAFailingMessageInItsPlaceAndLaterOnesWait) {
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

  total += consumer.run_once();
  const auto meanwhile = ledger.lines();
  const auto status = nats::InboxOperations{ledger.store}.status();
  fails = false;
  const bool handled = reaches(consumer, 3);

  EXPECT_TRUE(handled);
  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_EQ(status.at(0).readers.at(0).failing, 1);
  EXPECT_EQ(status.at(0).readers.at(0).error, "not yet");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@2 order.shipped",
                                          "order-2@1 order.placed"));
  EXPECT_EQ(total.failed, 1);
  EXPECT_EQ(total.parked, 0);
}

TEST_F(Consuming, ParksPoisonWithItsStreamAndRetriesThemInOrderOnRequest) {
  shop.place("1");
  shop.ship("1");
  shop.place("2");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  bool fails = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (fails && placed.stream().key() == "1") throw std::runtime_error{"no such customer"};
    Ledger::note(transaction, placed);
  });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  nats::InboxOperations inbox{ledger.store};

  EXPECT_TRUE(reaches(consumer, 1));
  const auto parked = inbox.parked();
  const auto status = inbox.status();
  const auto meanwhile = ledger.lines();
  fails = false;
  ASSERT_THAT(parked, SizeIs(2));
  EXPECT_THAT([&] { inbox.retry(parked[1].number); },
              ::testing::ThrowsMessage<UsageError>(HasSubstr("waits behind message 1")));
  inbox.retry(parked[0].number);
  const nats::ConsumerTick after = consumer.run_once();

  EXPECT_EQ(total.parked, 2);
  EXPECT_EQ(total.failed, 2);
  EXPECT_EQ(parked[0].consumer, "billing");
  EXPECT_EQ(parked[0].attempts, 3);
  EXPECT_EQ(parked[0].error, "no such customer");
  EXPECT_EQ(parked[0].headers.at("ce-type"), "order.placed");
  EXPECT_EQ(parked[0].payload, R"({"customer":"jane","total_cents":100})");
  EXPECT_EQ(parked[1].error, "");
  EXPECT_EQ(parked[1].headers.at("ce-type"), "order.shipped");
  EXPECT_EQ(status.at(0).parked_messages, 2);
  EXPECT_EQ(status.at(0).parked_streams, 1);
  EXPECT_EQ(after.revived, 2);
  EXPECT_THAT(inbox.parked(), IsEmpty());
  EXPECT_THAT(meanwhile, ElementsAre("order-2@1 order.placed"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed", "order-1@1 order.placed",
                                          "order-1@2 order.shipped"));
}

TEST_F(Consuming, ParksPoisonAloneIfItIsToGoOn) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  with.on_failure = nats::OnFailure::park_message;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>([](Transaction&, const auto&) { throw std::runtime_error{"no"}; });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);

  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .parked = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
}

/// A server takes no other text, and JSON has none: what is too long isn't cut within a character.
TEST_F(Consuming, StoresAnErrorAsValidText) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  with.on_failure = nats::OnFailure::park_message;
  nats::Consumer consumer{ledger.store, with};
  const std::string vast = std::string(1'999, 'x') + "日";
  consumer.on<OrderPlaced>(
      [](Transaction&, const auto&) { throw std::runtime_error{"caf\xe9 closed"}; });
  consumer.on<OrderShipped>([&](Transaction&, const auto&) { throw std::runtime_error{vast}; });

  consumer.run_once();

  const auto parked = nats::InboxOperations{ledger.store}.parked();
  ASSERT_THAT(parked, SizeIs(2));
  EXPECT_EQ(parked[0].error, "caf? closed");
  EXPECT_EQ(parked[1].error, std::string(1'999, 'x'));
}

TEST_F(Consuming, HandlesWhatWaitedBehindADiscardedMessage) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>([](Transaction&, const auto&) { throw std::runtime_error{"no"}; });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  nats::InboxOperations inbox{ledger.store};
  consumer.run_once();

  inbox.discard(inbox.parked().at(0).number);
  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .revived = 1}));
  EXPECT_THAT(inbox.parked(), IsEmpty());
  EXPECT_THAT(inbox.gaps(), IsEmpty());
}

TEST_F(Consuming, ParksTheLaterMessagesOfAStreamThatIsParkedUntilItIsRetried) {
  shop.place("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  nats::Consumer consumer{ledger.store, with};
  bool fails = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (fails) throw std::runtime_error{"no"};
    Ledger::note(transaction, placed);
  });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  nats::InboxOperations inbox{ledger.store};
  consumer.run_once();
  shop.ship("1");
  shop.publish();
  const nats::ConsumerTick behind = consumer.run_once();
  inbox.retry(inbox.parked().at(0).number);
  consumer.run_once();
  const auto failed_again = inbox.parked();
  fails = false;
  inbox.retry(failed_again.at(0).number);
  consumer.run_once();

  EXPECT_EQ(behind, (nats::ConsumerTick{.parked = 1}));
  ASSERT_THAT(failed_again, SizeIs(2));
  EXPECT_FALSE(failed_again[1].is_to_retry);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@2 order.shipped"));
}

TEST_F(Consuming, StopsWhenItsParkedMessagesAreTooLargeAndGoesOnWhenSomeAreGone) {
  for (const std::string key : {"1", "2", "3"}) shop.place(key, 100, std::string(1'000, 'x'));
  shop.publish();
  auto with = options();
  with.batch_size = 1;
  with.max_attempts = 1;
  with.parked_bytes_limit = 1'000;
  nats::Consumer consumer{ledger.store, with};
  bool fails = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (fails) throw std::runtime_error{"no"};
    Ledger::note(transaction, placed);
  });
  nats::InboxOperations inbox{ledger.store};

  total += consumer.run_once();
  fails = false;
  const nats::ConsumerTick stopped = consumer.run_once();
  const auto parked = inbox.parked();
  const std::string why = inbox.status().at(0).readers.at(0).error;
  inbox.discard(parked.at(0).number);
  const nats::ConsumerTick after = consumer.run_once();

  EXPECT_THAT(parked, SizeIs(1));
  EXPECT_EQ(stopped, nats::ConsumerTick{});
  EXPECT_THAT(why, HasSubstr("more than parked_bytes_limit; retry or discard some"));
  EXPECT_EQ(inbox.status().at(0).readers.at(0).error, "");
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.stopped")));
  EXPECT_EQ(after, (nats::ConsumerTick{.handled = 2}));
}

TEST_F(Consuming, RestsWhileItIsPaused) {
  shop.place("1");
  shop.publish();
  const auto consumer = make_consumer(options());
  nats::InboxOperations inbox{ledger.store};

  inbox.pause("billing");
  const nats::ConsumerTick paused = consumer->run_once();
  const bool is_paused = inbox.status().at(0).readers.at(0).is_paused;
  inbox.resume("billing");
  const nats::ConsumerTick after = consumer->run_once();

  EXPECT_EQ(paused, nats::ConsumerTick{});
  EXPECT_TRUE(is_paused);
  EXPECT_EQ(after, (nats::ConsumerTick{.handled = 1}));
  EXPECT_THROW(inbox.pause("biling"), NotFound);
}

TEST_F(Consuming, KeepsAParkedMessageWhoseRetryFailsAndForgetsOneThatIsDiscarded) {
  shop.place("1");
  shop.publish();
  auto with = options();
  with.max_attempts = 1;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>(
      [](Transaction&, const auto&) { throw std::runtime_error{"still no such customer"}; });
  nats::InboxOperations inbox{ledger.store};
  consumer.run_once();
  const std::int64_t parked = inbox.parked().at(0).number;

  inbox.retry(parked);
  consumer.run_once();
  const auto after_retry = inbox.parked();
  inbox.discard(parked);

  ASSERT_THAT(after_retry, SizeIs(1));
  EXPECT_EQ(after_retry[0].attempts, 2);
  EXPECT_THAT(log.entries(),
              Contains(AllOf(HasSubstr("error consumer.parked"),
                             HasSubstr("parked message 1 failed again, at attempt 2"))));
  EXPECT_FALSE(after_retry[0].is_to_retry);
  EXPECT_THAT(inbox.parked(), IsEmpty());
  EXPECT_THROW(inbox.retry(parked), NotFound);
  EXPECT_THROW(inbox.discard(parked), NotFound);
}

TEST_F(Consuming, ParksAnUndecodableMessageAtOnce) {
  shop.place("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  consumer.on<OtherOrderPlaced>([](Transaction&, const auto&) {});

  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.parked = 1}));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.parked().at(0).error,
              HasSubstr("event 1 (order.placed v1, version 1 of 'order-1') is corrupt"));
}

TEST_F(Consuming, ParksAForeignMessage) {
  shop.place("1");
  shop.publish();
  test::JetStream{server.url()}.publish("shop.hello", "there");

  const nats::ConsumerTick tick = make_consumer(options())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .parked = 1}));
  const auto parked = nats::InboxOperations{ledger.store}.parked().at(0);
  EXPECT_EQ(parked.payload, "there");
  EXPECT_EQ(parked.subject, "shop.hello");
  EXPECT_THAT(parked.error, HasSubstr("header 'ce-specversion' is missing"));
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

  consumer.run_once();

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

TEST_F(Consuming, ReportsAMissingMessageAndContinues) {
  for (int i = 0; i < 4; ++i) shop.send_parcel();
  shop.publish();
  test::JetStream{server.url()}.erase("SHOP", 2);
  const auto consumer = make_consumer(options());
  nats::InboxOperations inbox{ledger.store};

  total += consumer->run_once();

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

TEST_F(Consuming, HandlesAMissedMessageThatIsPublishedAgain) {
  for (int i = 0; i < 3; ++i) shop.send_parcel();
  shop.publish();
  test::JetStream{server.url()}.erase("SHOP", 2);
  const auto consumer = make_consumer(options());
  nats::InboxOperations inbox{ledger.store};
  consumer->run_once();
  const auto gaps = inbox.gaps();

  OutboxOperations{shop.store}.republish({.from = GlobalSequence{1}, .to = GlobalSequence{3}});
  shop.publish();
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .duplicates = 2}));
  EXPECT_THAT(inbox.gaps(), IsEmpty());
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@3 order.shipped",
                                          "parcel-1@2 order.shipped"));
}

TEST_F(Consuming, BeginsWithNewMessagesOnRequest) {
  shop.send_parcel();
  shop.publish();
  auto with = options();
  with.start = nats::ConsumerStart::now;
  const auto consumer = make_consumer(with);
  consumer->run_once();

  shop.send_parcel();
  shop.publish();
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@2 order.shipped"));
  EXPECT_THAT(nats::InboxOperations{ledger.store}.gaps(), IsEmpty());
}

/// As a resize makes them.
TEST_F(Consuming, FromNowOnReadsStreamsWholeThatAreMadeLater) {
  test::JetStream broker{server.url()};
  broker.make_stream("OLD", "old.>");
  auto with = options();
  with.start = nats::ConsumerStart::now;
  with.stream = "OLD";
  make_consumer(with)->run_once();

  shop.send_parcel();
  shop.publish();
  with.stream = "SHOP";
  make_consumer(with)->run_once();

  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped"));
}

TEST_F(Consuming, FromNowOnReadsAStreamThatWasMadeAgainBeforeAnythingCame) {
  shop.send_parcel();
  shop.send_parcel();
  shop.publish();
  auto with = options();
  with.start = nats::ConsumerStart::now;
  make_consumer(with)->run_once();

  test::JetStream broker{server.url()};
  broker.delete_stream("SHOP");
  test::Shop other{dir.file("other.db"), server.url()};
  other.send_parcel();
  other.publish();
  make_consumer(with)->run_once();

  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped"));
}

TEST_F(Consuming, IgnoresEventsWithoutAHandlerButKnowsThem) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, options()};
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);

  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .ignored = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
}

TEST_F(Consuming, TakesOnlyMessagesOfItsFilter) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = options();
  with.filter_subject = "shop.order.shipped";

  const nats::ConsumerTick tick = make_consumer(with)->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
}

TEST_F(Consuming, IsDoneByOneProcessOfANameAndAnotherStandsBy) {
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
  std::atomic<bool> stands_by = false;
  const auto adding_to = [&](nats::ConsumerTick& sum) {
    return [&](const nats::ConsumerTick& tick) {
      sum += tick;
      if (!tick.reader.empty()) stands_by = true;
    };
  };
  one->on_tick(adding_to(by_one));
  two.on_tick(adding_to(by_two));

  {
    std::jthread first{[&](std::stop_token stop) { one->run(stop); }};
    std::jthread second{[&](std::stop_token stop) { two.run(stop); }};
    EXPECT_TRUE(test::eventually([&] { return ledger.lines().size() == 200; }));
    EXPECT_TRUE(test::eventually([&] { return stands_by.load(); }));
  }

  EXPECT_EQ(by_one.handled + by_two.handled, 200);
  EXPECT_EQ(ledger.lines().front(), "order-0@1 order.placed");
  EXPECT_EQ(ledger.lines().back(), "order-199@1 order.placed");
}

/// The lock file by which others see that it runs may go, as on a server a session may.
TEST_F(Consuming, IsStillSeenAfterItsPresenceWasTidiedAway) {
  testing::ManualClock clock;
  const std::string path = dir.file("shared.db");
  shop.place("1");
  shop.publish();
  Ledger first_ledger{path, {.clock = &clock}};
  Ledger second_ledger{path, {.clock = &clock}};
  nats::Consumer one{first_ledger.store, options()};
  nats::Consumer two{second_ledger.store, options()};
  nats::InboxOperations inbox{second_ledger.store};
  const auto reader = [&] { return inbox.status().at(0).readers.at(0); };
  const auto lease_until = [&] { return reader().lease_until; };
  std::jthread reading{[&](std::stop_token stop) { one.run(stop); }};
  ASSERT_TRUE(test::eventually([&] { return reader().position == 1; }));
  const Timestamp before = lease_until();

  std::filesystem::remove(path + "-lock");
  clock.advance(options().lease_ttl / 3);
  ASSERT_TRUE(test::eventually([&] { return lease_until() > before; }));

  EXPECT_THAT(two.run_once().reader, ::testing::Not(::testing::IsEmpty()));
}

/// As in a database that was moved, which doesn't take the inbox along.
TEST_F(Consuming, BeginsBehindThePositionThatAnOperatorSets) {
  for (int i = 0; i < 3; ++i) shop.send_parcel();
  shop.publish();
  for (const char* const name : {"", "..", "a b", "SHOP ", "x\r\nPUB y 1"}) {
    EXPECT_THROW(nats::InboxOperations{ledger.store}.move("billing", name, 2), UsageError) << name;
  }
  nats::InboxOperations{ledger.store}.move("billing", "SHOP", 2);

  const auto consumer = make_consumer(options());
  const nats::ConsumerTick tick = consumer->run_once();
  nats::InboxOperations{ledger.store}.move("billing", "SHOP", 0);
  const nats::ConsumerTick again = consumer->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1}));
  EXPECT_EQ(again, (nats::ConsumerTick{.duplicates = 3}));
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@3 order.shipped"));
}

TEST_F(Consuming, KeepsItsFilter) {
  auto with = options();
  with.filter_subject = "shop.order.placed";
  shop.place("1");
  shop.publish();
  make_consumer(with)->run_once();

  EXPECT_THAT([&] { make_consumer(options()); },
              ::testing::ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("with the filter_subject 'shop.order.placed', not ''"),
                        HasSubstr("give this one another name"))));
}

TEST_F(Consuming, MayHaveAnotherFilterAsLongAsItHasReadNothing) {
  shop.place("1");
  shop.publish();
  auto mistyped = options();
  mistyped.filter_subject = "shpo.order.placed";
  EXPECT_THROW(make_consumer(mistyped)->run_once(), BrokerFailed);
  auto corrected = options();
  corrected.filter_subject = "shop.order.placed";

  EXPECT_EQ(make_consumer(corrected)->run_once().handled, 1);
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
  EXPECT_THAT(problem({.name = "a", .lease_ttl = 1ms}), HasSubstr("lease_ttl is 1"));
  EXPECT_THAT(problem({.name = "a", .retry_backoff = 2'000ms, .retry_backoff_max = 1'000ms}),
              HasSubstr("retry_backoff is more than retry_backoff_max"));
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
