// A store that was restored from a backup, or copied, publishes other events under versions that a
// consumer knows: another history.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace stela::consumer_history_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderShipped;
using test::Shop;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AnotherHistory : public ::testing::Test {
 protected:
  /// An event of the stream order-1 for each carrier.
  static void append(Shop& to, const std::vector<std::string>& carriers) {
    UnitOfWork unit{to.store};
    for (const std::string& carrier : carriers) {
      unit.append(StreamId::parse("order-1"), ExpectedVersion::any(), OrderShipped{carrier});
    }
    unit.commit();
  }
  void publish(const std::vector<std::string>& carriers) const {
    Shop shop{dir.file("shop.db"), server.url()};
    append(shop, carriers);
    shop.publish();
  }
  void back_up() const {
    auto store = sqlite::open(dir.file("shop.db"));
    (void)sqlite::backup(store, dir.file("restored.db"));
  }
  /// Publishes them from the backup, once the operator has let it.
  void publish_after_restore(const std::vector<std::string>& carriers) const {
    Shop restored{dir.file("restored.db"), server.url()};
    append(restored, carriers);
    OutboxOperations operations{restored.store, {.who = "ann"}};
    ASSERT_TRUE(test::eventually([&] {
      restored.publish();
      return operations.status().partitions.front().stopped == StopReason::store_went_back;
    }));
    operations.adopt(PartitionId{});
    ASSERT_TRUE(test::eventually([&] {
      restored.publish();
      const OutboxStatus status = operations.status();
      return status.pending + status.in_flight + status.retrying == 0;
    }));
  }
  /// Notes the carriers; fails for those that `fails` names.
  std::unique_ptr<nats::Consumer> make_consumer(const nats::ConsumerOptions& with) {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
    consumer->on<OrderShipped>([this](Transaction& transaction, const auto& shipped) {
      if (shipped->carrier == fails) throw std::runtime_error{"not yet"};
      Ledger::write(transaction,
                    shipped->carrier + '@' + std::to_string(shipped.version().value()));
    });
    return consumer;
  }
  nats::ConsumerOptions options(const std::string& stream = "SHOP") const {
    return {.url = server.url(),
            .name = "billing",
            .stream = stream,
            .ack_wait = 1'000ms,
            .retry_backoff = 20ms,
            .retry_backoff_max = 50ms,
            .max_attempts = 1'000'000,
            .gap_patience = 1'100ms};
  }
  std::vector<std::string> letters() {
    std::vector<std::string> letters;
    for (const auto& letter : inbox.dead_letters()) {
      letters.push_back(letter.headers.at("ce-streamversion") + ' ' + letter.payload);
    }
    return letters;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::JetStream broker{server.url()};
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log}};
  nats::InboxOperations inbox{ledger.store};
  std::string fails;
};

TEST_F(AnotherHistory, EndsAsDeadLettersAndLetsLaterVersionsPass) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  const auto consumer = make_consumer(options());
  consumer->poll();

  publish_after_restore({"x", "y", "z"});
  const nats::ConsumerTick tick = consumer->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .dead = 2}));
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2", "c@3", "z@4"));
  EXPECT_THAT(letters(),
              ElementsAre(HasSubstr(R"(2 {"carrier":"x"})"), HasSubstr(R"(3 {"carrier":"y"})")));
  EXPECT_THAT(inbox.dead_letters().at(0).error,
              HasSubstr("another history: the inbox has another event as this version"));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.dead_letter consumer=billing")));
}

TEST_F(AnotherHistory, IsHandledWhenAnOperatorTriesItsLetterAgain) {
  publish({"a"});
  back_up();
  publish({"b"});
  const auto consumer = make_consumer(options());
  consumer->poll();
  publish_after_restore({"x"});
  consumer->poll();

  ASSERT_THAT(inbox.dead_letters(), SizeIs(1));
  inbox.retry(inbox.dead_letters()[0].number);
  const nats::ConsumerTick tick = consumer->poll();

  EXPECT_EQ(tick.revived, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2", "x@2"));
  EXPECT_THAT(inbox.dead_letters(), IsEmpty());
}

TEST_F(AnotherHistory, EndsAsDeadLettersInOneBatchWithTheFirst) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  publish_after_restore({"x", "y"});

  const nats::ConsumerTick tick = make_consumer(options())->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 3, .dead = 2}));
}

TEST_F(AnotherHistory, IsADuplicateWhenItComesAgainAndSoIsTheFirst) {
  publish({"a"});
  back_up();
  publish({"b"});
  publish_after_restore({"x"});
  make_consumer(options())->poll();
  broker.delete_consumer("SHOP", "billing");

  const nats::ConsumerTick tick = make_consumer(options())->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.duplicates = 3}));
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2"));
  EXPECT_THAT(letters(), SizeIs(1));
}

TEST_F(AnotherHistory, EndsAsADeadLetterWhenItComesForTheSecondTime) {
  publish({"a"});
  back_up();
  publish({"b"});
  const auto consumer = make_consumer(options());
  consumer->poll();
  publish_after_restore({"x"});

  broker.take("SHOP", "billing", 1);
  broker.give_back();
  const bool came = test::eventually([&] { return consumer->poll().dead == 1; });

  EXPECT_TRUE(came);
  EXPECT_THAT(letters(), SizeIs(1));
  EXPECT_THAT(inbox.held(), IsEmpty());
}

TEST_F(AnotherHistory, OfAHeldVersionEndsAsADeadLetterAndLeavesTheFirstHeld) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  fails = "b";
  const auto consumer = make_consumer(options());
  consumer->poll();
  ASSERT_THAT(inbox.held(), SizeIs(1));

  publish_after_restore({"x", "y"});
  consumer->poll();
  const auto letters_meanwhile = letters();
  broker.delete_consumer("SHOP", "billing");
  make_consumer(options())->poll();
  fails.clear();
  const bool handled = test::eventually([&] {
    consumer->poll();
    return ledger.lines().size() == 3;
  });

  EXPECT_THAT(letters_meanwhile, ElementsAre(HasSubstr("x"), HasSubstr("y")));
  EXPECT_TRUE(handled);
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2", "c@3"));
  EXPECT_THAT(letters(), SizeIs(2));
  EXPECT_THAT(inbox.held(), IsEmpty());
}

TEST_F(AnotherHistory, OfACopyInAStreamOfItsOwnEndsAsDeadLetters) {
  publish({"a", "b"});
  back_up();
  publish({"c", "d"});
  {
    nats::Publisher publisher{
        {.url = server.url(), .prefix = "copy", .stream = "COPY", .ensure_stream = true}};
    auto store = sqlite::open(dir.file("restored.db"));
    Outbox outbox{store};
    Relay relay{outbox, publisher};
    UnitOfWork unit{store};
    unit.append(StreamId::parse("order-1"), ExpectedVersion::any(), OrderShipped{"x"});
    unit.append(StreamId::parse("order-1"), ExpectedVersion::any(), OrderShipped{"y"});
    unit.commit();
    OutboxOperations operations{store, {.who = "ann"}};
    ASSERT_TRUE(test::eventually([&] {
      relay.tick();
      const OutboxStatus status = operations.status();
      if (status.stopped > 0) operations.adopt(PartitionId{});
      return status.pending + status.in_flight + status.retrying == 0;
    }));
  }
  const auto of_the_copy = make_consumer(options("COPY"));
  const auto of_the_first = make_consumer(options());
  nats::ConsumerTick total = of_the_copy->poll();
  EXPECT_EQ(total.held, 2) << "versions 1 and 2 are missing in the copy's stream";

  const bool done = test::eventually([&] {
    total += of_the_first->poll();
    total += of_the_copy->poll();
    return total.handled + total.dead == 6;
  });

  EXPECT_TRUE(done);
  EXPECT_EQ(total.duplicates, 0);
  EXPECT_THAT(letters(), SizeIs(2)) << "both histories are there, and none is lost";
}

TEST_F(AnotherHistory, IsToldFromForgottenMessages) {
  publish({"a"});
  back_up();
  publish({"b"});
  make_consumer(options())->poll();
  test::RawSqlite raw{sqlite::path(ledger.store)};
  raw.run("UPDATE inbox_handled SET handled_at = handled_at - 3600000000");
  raw.run("DELETE FROM inbox_handled");

  publish_after_restore({"x"});
  const nats::ConsumerTick tick = make_consumer(options())->poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.dead = 1}));
}

}  // namespace
}  // namespace stela::consumer_history_test
