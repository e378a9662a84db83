// The consumer at the broker: one that could lose messages, or keep them back, isn't used.
#include "nats/shop_at_broker.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace stela::consumer_durable_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Change = std::function<void(jsConsumerConfig&)>;

std::int64_t nanoseconds(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds{time}.count();
}

class ExistingDurable : public test::ShopAtBroker {
 protected:
  ExistingDurable() { shop.publish(); }

  void make_durable(const Change& change) { broker.make_consumer("SHOP", "billing", change); }
  /// "none" if it is used.
  std::string refusal(const nats::ConsumerOptions& with) {
    nats::Consumer consumer{ledger.store, with};
    try {
      consumer.poll();
      return "none";
    } catch (const UsageError& e) {
      return e.what();
    }
  }
  std::string refusal_of(const Change& change) {
    make_durable(change);
    std::string text = refusal(defaults());
    broker.delete_consumer("SHOP", "billing");
    return text;
  }

  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log}};
};

TEST_F(ExistingDurable, IsRefusedIfItLosesMessages) {
  EXPECT_THAT(refusal_of([](auto& config) { config.MaxDeliver = 5; }),
              AllOf(HasSubstr("max_deliver is 5 and should be -1"),
                    HasSubstr("'nats consumer edit SHOP billing --max-deliver=-1'")));
  EXPECT_THAT(refusal_of([](auto& config) { config.HeadersOnly = true; }),
              AllOf(HasSubstr("headers_only is true"), HasSubstr("--no-headers-only")));
  EXPECT_THAT(refusal_of([](auto& config) { config.MemoryStorage = true; }),
              AllOf(HasSubstr("mem_storage is true"), HasSubstr("nats consumer rm SHOP billing")));
  EXPECT_THAT(refusal_of([](auto& config) { config.InactiveThreshold = nanoseconds(60s); }),
              HasSubstr("inactive_threshold is 60000 ms"));
  EXPECT_THAT(refusal_of([](auto& config) { config.DeliverPolicy = js_DeliverNew; }),
              HasSubstr("deliver_policy is new and should be all"));
}

TEST_F(ExistingDurable, IsRefusedIfItIsAnother) {
  EXPECT_THAT(refusal_of([](auto& config) { config.AckPolicy = js_AckAll; }),
              HasSubstr("ack_policy is all and should be explicit"));
  EXPECT_THAT(refusal_of([](auto& config) { config.FilterSubject = "shop.order.placed"; }),
              HasSubstr("filter_subject is 'shop.order.placed' and should be ''"));
  EXPECT_THAT(refusal_of([](auto& config) { config.DeliverSubject = "elsewhere"; }),
              HasSubstr("deliver_subject is 'elsewhere'"));
  EXPECT_THAT(refusal_of([](auto& config) { config.ReplayPolicy = js_ReplayOriginal; }),
              HasSubstr("replay_policy is original and should be instant"));
}

TEST_F(ExistingDurable, IsRefusedIfItsLimitsAreTooSmall) {
  EXPECT_THAT(refusal_of([](auto& config) { config.MaxRequestBatch = 10; }),
              AllOf(HasSubstr("max_batch is 10 and should be at least the option batch_size, 100"),
                    HasSubstr("--max-pull-batch=100")));
  EXPECT_THAT(refusal_of([](auto& config) { config.MaxRequestExpires = nanoseconds(100ms); }),
              AllOf(HasSubstr("max_expires is 100 ms and should be at least the option idle_wait"),
                    HasSubstr("--max-pull-expire=500ms")));
  EXPECT_THAT(refusal_of([](auto& config) { config.MaxAckPending = 10; }),
              HasSubstr("max_ack_pending is 10"));
}

TEST_F(ExistingDurable, NamesAllThatIsWrongAtOnce) {
  EXPECT_THAT(refusal_of([](auto& config) {
                config.MaxDeliver = 5;
                config.MaxRequestBatch = 10;
              }),
              HasSubstr("--max-deliver=-1 --max-pull-batch=100'"));
}

TEST_F(ExistingDurable, MustMatchTheOptions) {
  make_durable([](auto& config) { config.AckWait = nanoseconds(60s); });
  auto with = defaults();
  EXPECT_EQ(refusal(with), "none");
  with.ack_wait = 10s;
  EXPECT_THAT(refusal(with), AllOf(HasSubstr("ack_wait is 60000 ms and should be 10000 ms"),
                                   HasSubstr("--wait=10000ms")));
  with.ack_wait = 60s;
  with.max_ack_pending = 500;
  EXPECT_THAT(refusal(with), AllOf(HasSubstr("max_ack_pending is 1000 and should be 500"),
                                   HasSubstr("--max-pending=500")));
}

TEST_F(ExistingDurable, IsLookedAtAgainWhenItWasMadeAgain) {
  nats::Consumer consumer{ledger.store, defaults()};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  shop.place("1");
  shop.publish();
  std::string problem;
  std::atomic<bool> has_ended{false};
  {
    std::jthread running{[&](std::stop_token stop) {
      try {
        consumer.run(stop);
      } catch (const UsageError& e) {
        problem = e.what();
      }
      has_ended = true;
    }};
    ASSERT_TRUE(test::eventually([&] { return ledger.lines().size() == 1; }));
    broker.delete_consumer("SHOP", "billing");
    make_durable([](auto& config) { config.MaxDeliver = 5; });
    test::eventually([&] { return has_ended.load(); });
  }

  EXPECT_THAT(problem, HasSubstr("max_deliver is 5"));
}

TEST_F(ExistingDurable, IsReportedMissingWithoutAnAnswer) {
  nats::Consumer consumer{ledger.store, defaults()};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  consumer.poll();
  broker.delete_consumer("SHOP", "billing");
  shop.place("1");
  shop.publish();

  std::string problem;
  const bool handled = test::eventually([&] {
    try {
      consumer.poll();
    } catch (const BrokerFailed& e) {
      problem = e.what();
    }
    return ledger.lines().size() == 1;
  });

  EXPECT_TRUE(handled);
  EXPECT_THAT(problem, HasSubstr("the stream 'SHOP' has no consumer 'billing' any more"));
}

/// A consumer that is made again at the broker after its inbox forgot something.
class RemadeDurable : public test::ShopAtBroker {
 protected:
  nats::ConsumerOptions placed_only() const {
    return {.url = server.url(),
            .name = "billing",
            .stream = "SHOP",
            .filter_subject = "shop.order.placed",
            .retention = 1h};
  }
  /// What a new process handles.
  nats::ConsumerTick consume(const nats::ConsumerOptions& with) {
    nats::Consumer consumer{ledger.store, with};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
    return consumer.poll();
  }
  void place(test::Shop& at, const std::string& key) {
    at.place(key);
    at.publish();
  }
  void place(const std::string& key) { place(shop, key); }
  void lose_durable() { broker.delete_consumer("SHOP", "billing"); }
  std::int64_t remembered() {
    return test::RawSqlite{sqlite::path(ledger.store)}.integer(
        "SELECT count(*) FROM inbox_handled");
  }
  /// Handles two orders, and forgets the first one.
  void forget_the_first(const nats::ConsumerOptions& with) {
    place("1");
    consume(with);
    clock.advance(2h);
    place("2");
    consume(with);
    consume(with);
    ASSERT_EQ(remembered(), 1);
  }

  testing::ManualClock clock;
  Ledger ledger{dir.file("billing.db"), {.clock = &clock}};
};

TEST_F(RemadeDurable, ContinuesAfterTheSettledMessages) {
  forget_the_first(placed_only());
  lose_durable();
  place("3");

  EXPECT_EQ(consume(placed_only()).handled, 1);
  place("4");
  EXPECT_EQ(consume(placed_only()).handled, 1) << "what it is now is what it should be";

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-2@1 order.placed",
                                          "order-3@1 order.placed", "order-4@1 order.placed"));
}

TEST_F(RemadeDurable, OfAConsumerThatBeganLaterMissesNothing) {
  auto with = placed_only();
  with.start = nats::ConsumerStart::now;
  place("1");
  consume(with);
  place("2");
  consume(with);
  consume(with);
  lose_durable();
  place("3");

  EXPECT_EQ(consume(with).handled, 1);

  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed", "order-3@1 order.placed"));
}

TEST_F(RemadeDurable, WithAnotherFilterBeginsAgain) {
  auto with = placed_only();
  with.filter_subject = "shop.order.shipped";
  place("1");
  shop.ship("1");
  shop.publish();
  consume(with);
  consume(with);
  lose_durable();

  EXPECT_EQ(consume(placed_only()).handled, 1);
}

TEST_F(RemadeDurable, OfAStreamThatWasMadeAgainBeginsAgain) {
  forget_the_first(placed_only());
  broker.delete_stream("SHOP");
  test::Shop other{dir.file("other.db"), server.url()};
  for (const std::string key : {"5", "6", "7"}) place(other, key);

  EXPECT_EQ(consume(placed_only()).handled, 3);
}

TEST_F(RemadeDurable, HandlesNothingAgainThatCameAfterItsGapWasNoted) {
  shop.publish();
  auto with = placed_only();
  with.filter_subject = {};
  auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
  consumer->on<OrderPlaced>(Ledger::note<OrderPlaced>);
  consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
  shop.send_parcel();
  shop.publish();
  consumer->poll();
  for (int i = 0; i < 4; ++i) shop.send_parcel();
  shop.publish();
  broker.erase("SHOP", 2);
  broker.take("SHOP", "billing", 1);
  EXPECT_TRUE(test::eventually([&] {
    clock.advance(30s);
    consumer->poll();
    return ledger.lines().size() == 3;
  }));
  EXPECT_TRUE(test::eventually([&] {
    broker.give_back();
    consumer->poll();
    return ledger.lines().size() == 4;
  }));
  EXPECT_EQ(ledger.lines().back(), "parcel-1@3 order.shipped");

  clock.advance(3h);
  place("1");
  consumer->poll();
  clock.advance(2min);
  consumer->poll();
  ASSERT_EQ(remembered(), 1);
  consumer.reset();
  lose_durable();

  EXPECT_EQ(consume(with).handled, 0);

  const auto gaps = nats::InboxOperations{ledger.store}.gaps();
  ASSERT_THAT(gaps, SizeIs(1)) << "the second message is missing still";
  EXPECT_EQ(gaps[0].missing.value(), 2);
}

TEST_F(RemadeDurable, FindsMessagesHandledBeforeALongRestInTheInbox) {
  place("1");
  consume(placed_only());
  clock.advance(24h * 30);
  lose_durable();

  // It was handled after anybody had asked the broker how far the consumer was.
  EXPECT_EQ(consume(placed_only()).duplicates, 1);

  EXPECT_THAT(ledger.lines(), SizeIs(1));
}

}  // namespace
}  // namespace stela::consumer_durable_test
