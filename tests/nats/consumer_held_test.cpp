// A stream that can't move is held in the inbox, and keeps nobody else back.
#include "nats/middleman.hpp"
#include "nats/shop_at_broker.hpp"
#include "support/recording_sinks.hpp"

#include <stela/framework/not_found.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

namespace stela::consumer_held_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

struct AtTheBroker {
  std::int64_t unacknowledged = -1;
  std::int64_t deliveries = -1;
};

class Holding : public test::ShopAtBroker {
 protected:
  /// Its handler of placed orders throws while `fails`.
  std::unique_ptr<nats::Consumer> make_consumer(const nats::ConsumerOptions& with) {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
    consumer->on<OrderPlaced>([this](Transaction& transaction, const auto& placed) {
      if (fails && placed.stream().key() == "1") fail();
      Ledger::note(transaction, placed);
    });
    consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
    return consumer;
  }
  /// Polls as time goes by, until the ledger has so many lines.
  bool reaches(nats::Consumer& consumer, std::size_t lines, std::chrono::milliseconds step = 1s) {
    return test::eventually([&] {
      total += consumer.poll();
      if (ledger.lines().size() >= lines) return true;
      clock.advance(step);
      return false;
    });
  }
  /// Polls while the broker sends again what it took, until the ledger has so many lines.
  bool reaches_with_what_is_given_back(nats::Consumer& consumer, std::size_t lines) {
    return test::eventually([&] {
      broker.give_back();
      total += consumer.poll();
      return ledger.lines().size() == lines;
    });
  }
  /// Polls when the message that fails is due again, four times.
  void fail_after_growing_pauses(nats::Consumer& consumer) {
    // A quarter more or less.
    for (const auto pause : {1'000ms, 2'000ms, 4'000ms, 8'000ms}) {
      const auto left = inbox.held().at(0).due_at - clock.now();
      EXPECT_GE(left, pause * 3 / 4);
      EXPECT_LE(left, pause * 5 / 4);
      clock.advance(pause * 5 / 4);
      total += consumer.poll();
    }
  }
  /// So many more messages of the order 1.
  void ship_again(int count) {
    for (int i = 0; i < count; ++i) {
      UnitOfWork unit{shop.store};
      unit.append(StreamId::parse("order-1"), ExpectedVersion::any(), OrderShipped{"dhl"});
      unit.commit();
    }
  }
  AtTheBroker look() {
    jsConsumerInfo* info = nullptr;
    if (js_GetConsumerInfo(&info, broker.context(), "SHOP", "billing", nullptr, nullptr) !=
        NATS_OK) {
      return {};
    }
    const AtTheBroker found{info->NumAckPending,
                            static_cast<std::int64_t>(info->Delivered.Consumer)};
    jsConsumerInfo_Destroy(info);
    return found;
  }
  std::int64_t count(const std::string& table) {
    return test::RawSqlite{sqlite::path(ledger.store)}.integer("SELECT count(*) FROM " + table);
  }

  testing::ManualClock clock;
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log, .clock = &clock}};
  nats::InboxOperations inbox{ledger.store};
  nats::ConsumerTick total;
  bool fails = true;
  std::function<void()> fail = [] { throw std::runtime_error{"not yet"}; };
};

TEST_F(Holding, EndsWhenTheFailingMessageHasLeftTheBroker) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  broker.erase("SHOP", 1);
  const bool handled = reaches(*consumer, 1);

  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
  EXPECT_EQ(total.lost, 1);
  ASSERT_THAT(inbox.gaps(), SizeIs(1));
  EXPECT_EQ(inbox.gaps()[0].missing.value(), 1);
  EXPECT_THAT(inbox.held(), IsEmpty());
  EXPECT_EQ(count("inbox_failures"), 0);
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.lost consumer=billing stream=SHOP "
                                                "event_stream=order-1 version=1")));
}

TEST_F(Holding, HandlesHeldMessagesBeforeOneThatLeftTheBroker) {
  shop.place("1");
  ship_again(3);
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  ASSERT_THAT(inbox.held(), SizeIs(1));

  broker.erase("SHOP", 3);
  fails = false;
  const bool handled = reaches(*consumer, 3);

  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@2 order.shipped",
                                          "order-1@4 order.shipped"));
  EXPECT_EQ(total.lost, 1);
  ASSERT_THAT(inbox.gaps(), SizeIs(1));
  EXPECT_EQ(inbox.gaps()[0].after.value(), 2);
  EXPECT_EQ(inbox.gaps()[0].missing.value(), 3);
  EXPECT_THAT(inbox.held(), IsEmpty());
}

TEST_F(Holding, EndsWhenTheWholeStreamWasPurged) {
  shop.place("1");
  ship_again(5);
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  broker.purge("SHOP");
  ship_again(1);
  shop.publish();
  const bool handled = reaches(*consumer, 1);

  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@7 order.shipped"));
  EXPECT_THAT(inbox.held(), IsEmpty());
  EXPECT_EQ(count("inbox_failures"), 0);
}

TEST_F(Holding, TakesNothingElseForAMessageOfAStreamThatWasMadeAgain) {
  shop.place("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  broker.delete_stream("SHOP");
  broker.make_stream("SHOP", "shop.>");
  broker.publish("shop.hello", "there");
  clock.advance(5s);
  EXPECT_TRUE(test::eventually([&] {
    try {
      total += consumer->poll();
    } catch (const BrokerFailed&) {
      // That its consumer is gone.
    }
    clock.advance(1s);
    return total.lost == 1 && inbox.dead_letters().size() == 1;
  }));

  EXPECT_THAT(inbox.held(), IsEmpty());
  EXPECT_EQ(inbox.dead_letters().at(0).subject, "shop.hello");
}

TEST_F(Holding, BlocksNoOtherStream) {
  constexpr int behind = 1'500;
  constexpr int others = 20;
  shop.place("1");
  ship_again(behind);
  for (int i = 0; i < others; ++i) shop.place("other-" + std::to_string(i));
  while (shop.publish().published > 0) {
  }
  auto with = defaults();
  with.max_attempts = 1'000'000;
  const auto consumer = make_consumer(with);

  const bool handled = reaches(*consumer, others);

  EXPECT_TRUE(handled);
  EXPECT_TRUE(test::eventually([&] { return look().unacknowledged == 0; }));
  EXPECT_EQ(look().deliveries, 1 + behind + others) << "the broker sends none again";
  const auto held = inbox.held();
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].stream, "order-1");
  EXPECT_EQ(held[0].version.value(), 1);
  EXPECT_EQ(held[0].error, "not yet");
  EXPECT_EQ(held[0].behind, behind);
  EXPECT_EQ(inbox.status().at(0).held_messages, 1 + behind);
}

TEST_F(Holding, HandlesHeldMessagesInOrderAfterTheFailingOneSucceeds) {
  constexpr int behind = 250;
  shop.place("1");
  ship_again(behind);
  shop.place("2");
  while (shop.publish().published > 0) {
  }
  auto with = defaults();
  with.max_attempts = 1'000'000;
  const auto consumer = make_consumer(with);
  ASSERT_TRUE(reaches(*consumer, 1));

  fails = false;
  const bool handled = reaches(*consumer, 2 + behind);

  EXPECT_TRUE(handled);
  const auto lines = ledger.lines();
  ASSERT_THAT(lines, SizeIs(2 + behind));
  EXPECT_EQ(lines[1], "order-1@1 order.placed");
  for (int i = 1; i <= behind; ++i) {
    EXPECT_EQ(lines[static_cast<std::size_t>(i) + 1],
              "order-1@" + std::to_string(i + 1) + " order.shipped");
  }
  EXPECT_THAT(inbox.held(), IsEmpty());
  EXPECT_EQ(count("inbox_held"), 0);
}

TEST_F(Holding, IsReadTogetherWhateverARoundTripTakes) {
  test::Middleman api{server.url()};
  auto with = defaults();
  with.api.prefix = test::Middleman::prefix;
  shop.place("1");
  ship_again(9);
  shop.publish();
  const auto consumer = make_consumer(with);
  total += consumer->poll();
  ASSERT_EQ(count("inbox_held"), 10);

  fails = false;
  api.gather_reads(10);
  const bool handled = reaches(*consumer, 10);

  EXPECT_TRUE(handled);
  EXPECT_THAT(log.entries(), Not(Contains(HasSubstr("consumer.trouble"))));
}

TEST_F(Holding, RetriesWithGrowingPausesThenMakesADeadLetter) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  fail_after_growing_pauses(*consumer);

  EXPECT_EQ(total.dead, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
  ASSERT_THAT(inbox.dead_letters(), SizeIs(1));
  EXPECT_EQ(inbox.dead_letters()[0].attempts, 5);
  EXPECT_EQ(inbox.dead_letters()[0].broker_sequence, 1u);
  EXPECT_THAT(inbox.held(), IsEmpty());
}

TEST_F(Holding, MakesNoExceptionForAHandlerThatIsShortOfMemory) {
  fail = [] { throw std::bad_alloc{}; };
  shop.place("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  fail_after_growing_pauses(*consumer);

  EXPECT_EQ(total.dead, 1);
}

TEST_F(Holding, IsEndedByAnOperatorWhoSkipsTheMessage) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();

  inbox.release(inbox.held().at(0).number, nats::HeldRelease::skip);
  EXPECT_TRUE(inbox.held().at(0).is_released);
  total += consumer->poll();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@2 order.shipped"));
  ASSERT_THAT(inbox.dead_letters(), SizeIs(1));
  EXPECT_EQ(inbox.dead_letters()[0].error, "skipped by an operator: not yet");
  EXPECT_EQ(inbox.dead_letters()[0].attempts, 1);
  EXPECT_THROW(inbox.release(77, nats::HeldRelease::skip), NotFound);
}

TEST_F(Holding, IsTriedAtOnceWhenAnOperatorSaysSo) {
  shop.place("1");
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  fails = false;

  inbox.release(inbox.held().at(0).number, nats::HeldRelease::retry);
  total += consumer->poll();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
}

TEST_F(Holding, LetsOthersPassWhileAMessageIsMissing) {
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  for (int i = 0; i < 3; ++i) shop.send_parcel();
  shop.place("2");
  shop.publish();
  broker.take("SHOP", "billing", 1);

  total += consumer->poll();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed"));
  EXPECT_TRUE(test::eventually([&] { return look().unacknowledged == 1; }));
  EXPECT_EQ(look().deliveries, 4);
}

TEST_F(Holding, WaitsBeyondItsPatienceForAMessageInFlightElsewhere) {
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  for (int i = 0; i < 3; ++i) shop.send_parcel();
  shop.publish();
  broker.take("SHOP", "billing", 1);
  total += consumer->poll();

  clock.advance(500s);
  total += consumer->poll();
  const auto meanwhile = ledger.lines();
  const bool handled = reaches_with_what_is_given_back(*consumer, 3);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_TRUE(handled);
  EXPECT_EQ(total.gaps, 0);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@2 order.shipped",
                                          "parcel-1@3 order.shipped"));
}

TEST_F(Holding, ContinuesAfterTenTimesItsPatienceInAnyCase) {
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  for (int i = 0; i < 2; ++i) shop.send_parcel();
  shop.publish();
  broker.take("SHOP", "billing", 1);
  total += consumer->poll();

  clock.advance(600s);
  total += consumer->poll();

  EXPECT_EQ(total.gaps, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@2 order.shipped"));
}

TEST_F(Holding, LosesNoPatienceWhenAWallClockJumps) {
  shop.publish();
  const auto consumer = make_consumer(defaults());
  total += consumer->poll();
  for (int i = 0; i < 2; ++i) shop.send_parcel();
  shop.publish();
  broker.take("SHOP", "billing", 1);
  clock.jump_to(testing::ManualClock::start - 7h);
  total += consumer->poll();

  clock.jump_to(testing::ManualClock::start);
  clock.advance(1s);
  total += consumer->poll();
  const auto meanwhile = ledger.lines();
  const bool handled = reaches_with_what_is_given_back(*consumer, 2);

  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_TRUE(handled);
  EXPECT_EQ(total.gaps, 0);
}

TEST_F(Holding, ContinuesSoonAfterAFastClockIsCorrected) {
  shop.place("1");
  shop.publish();
  auto with = defaults();
  with.max_attempts = 1'000;
  const auto consumer = make_consumer(with);
  clock.jump_to(testing::ManualClock::start + 11h);
  total += consumer->poll();
  fails = false;

  clock.jump_to(testing::ManualClock::start);
  const bool handled = reaches(*consumer, 1, 1min);

  EXPECT_TRUE(handled);
  EXPECT_LT(clock.now() - testing::ManualClock::start, 5min);
}

TEST_F(Holding, EndsForAMessageThatKilledItsProcessAndLeftTheBroker) {
  shop.place("1");
  shop.ship("1");
  shop.publish();
  auto with = defaults();
  { const auto makes_the_row = make_consumer(with); }
  broker.erase("SHOP", 1);
  test::RawSqlite raw{sqlite::path(ledger.store)};
  raw.run(
      "INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error) "
      "SELECT consumer, '" +
      shop.store.id().to_string() + "', 'order-1', 1, 1, 'the process ended' FROM inbox_consumers");
  const auto consumer = make_consumer(with);
  total += consumer->poll();
  EXPECT_THAT(ledger.lines(), IsEmpty());

  const bool handled = reaches(*consumer, 1, 10s);

  EXPECT_TRUE(handled);
  EXPECT_EQ(total.lost, 1);
  EXPECT_EQ(count("inbox_failures"), 0);
  EXPECT_THAT(inbox.gaps(), SizeIs(1));
}

TEST_F(Holding, WorksWithAFilterToo) {
  shop.place("1");
  shop.place("2");
  shop.publish();
  auto with = defaults();
  with.filter_subject = "shop.order.placed";
  const auto consumer = make_consumer(with);
  total += consumer->poll();

  broker.erase("SHOP", 1);
  EXPECT_TRUE(test::eventually([&] {
    total += consumer->poll();
    clock.advance(1s);
    return total.lost == 1;
  }));

  EXPECT_THAT(inbox.gaps(), SizeIs(1));
  EXPECT_THAT(inbox.held(), IsEmpty());
}

TEST_F(Holding, NeedsAStreamThatKeepsItsMessages) {
  broker.make_stream("QUEUE", "queue.>",
                     [](jsStreamConfig& config) { config.Retention = js_WorkQueuePolicy; });
  auto with = defaults();
  with.stream = "QUEUE";
  const auto consumer = make_consumer(with);

  EXPECT_THAT([&] { consumer->poll(); },
              ThrowsMessage<UsageError>(HasSubstr("'QUEUE' has workqueue retention")));
}

TEST_F(Holding, IsNotOverlookedByAConsumerOfTheFirstRelease) {
  { const auto makes_the_inbox = make_consumer(defaults()); }
  test::RawSqlite raw{sqlite::path(ledger.store)};

  // As 0.1.0 notes what it has handled.
  EXPECT_THAT(
      [&] {
        raw.run(
            "INSERT INTO inbox_handled (consumer, event_id, handled_at) "
            "VALUES (1, zeroblob(16), 0) ON CONFLICT DO NOTHING");
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("a newer Stela migrated this inbox")));
}

// --- several consumers of one durable

TEST_F(Holding, KeepsTheOrderOfEachStreamAmongSeveralConsumers) {
  constexpr int parcels = 10;
  constexpr int events = 40;
  constexpr std::size_t all = parcels * events;
  for (int i = 0; i < events; ++i) {
    for (int parcel = 0; parcel < parcels; ++parcel) {
      UnitOfWork unit{shop.store};
      unit.append(StreamId::of("parcel", std::to_string(parcel)), ExpectedVersion::any(),
                  OrderShipped{"dhl"});
      unit.commit();
    }
  }
  while (shop.publish().published > 0) {
  }
  auto with = defaults();
  with.batch_size = 7;
  with.retry_backoff = 20ms;
  with.max_attempts = 1'000;

  {
    std::vector<std::jthread> members;
    for (unsigned seed = 1; seed <= 3; ++seed) {
      members.emplace_back([&, seed](std::stop_token stop) {
        auto store = sqlite::open(sqlite::path(ledger.store));
        nats::Consumer consumer{store, with};
        std::minstd_rand random{seed};
        consumer.on<OrderShipped>([&](Transaction& transaction, const auto& shipped) {
          if (random() % 20 == 0) throw std::runtime_error{"now and then"};
          Ledger::note(transaction, shipped);
        });
        consumer.run(stop);
      });
    }
    EXPECT_TRUE(test::eventually([&] { return ledger.lines().size() >= all; }, 60s));
  }

  std::map<std::string, int> versions;
  for (const std::string& line : ledger.lines()) {
    const std::string stream = line.substr(0, line.find('@'));
    EXPECT_EQ(line, stream + '@' + std::to_string(++versions[stream]) + " order.shipped");
  }
  EXPECT_THAT(ledger.lines(), SizeIs(all));
  EXPECT_THAT(inbox.gaps(), IsEmpty());
  EXPECT_THAT(inbox.dead_letters(), IsEmpty());
}

}  // namespace
}  // namespace stela::consumer_held_test
