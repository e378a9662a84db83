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
            .retry_backoff = 20ms,
            .retry_backoff_max = 50ms,
            .max_attempts = 1'000'000};
  }
  void read_again() { inbox.move("billing", "SHOP", 0); }
  std::vector<std::string> parked() {
    std::vector<std::string> found;
    for (const auto& parked : inbox.parked()) {
      found.push_back(parked.headers.at("ce-streamversion") + ' ' + parked.payload);
    }
    return found;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log}};
  nats::InboxOperations inbox{ledger.store};
  std::string fails;
};

TEST_F(AnotherHistory, IsParkedAndLetsLaterVersionsPass) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  const auto consumer = make_consumer(options());
  consumer->run_once();

  publish_after_restore({"x", "y", "z"});
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 1, .parked = 2}));
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2", "c@3", "z@4"));
  EXPECT_THAT(parked(),
              ElementsAre(HasSubstr(R"(2 {"carrier":"x"})"), HasSubstr(R"(3 {"carrier":"y"})")));
  EXPECT_THAT(inbox.parked().at(0).error,
              HasSubstr("another history: the inbox has another event as this version"));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.parked consumer=billing")));
}

TEST_F(AnotherHistory, IsHandledWhenAnOperatorTriesItAgain) {
  publish({"a"});
  back_up();
  publish({"b"});
  const auto consumer = make_consumer(options());
  consumer->run_once();
  publish_after_restore({"x"});
  consumer->run_once();

  ASSERT_THAT(inbox.parked(), SizeIs(1));
  inbox.retry(inbox.parked()[0].number);
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_EQ(tick.revived, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2", "x@2"));
  EXPECT_THAT(inbox.parked(), IsEmpty());
}

/// The times of its events tell nothing: the clock of the restored store is behind.
TEST_F(AnotherHistory, IsParkedThoughItsClockIsBehind) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  const auto consumer = make_consumer(options());
  consumer->run_once();
  test::RawSqlite{sqlite::path(ledger.store)}.run(
      "UPDATE inbox_positions SET recorded_at = recorded_at + 3600000000");

  publish_after_restore({"x"});
  const nats::ConsumerTick tick = consumer->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.parked = 1}));
}

TEST_F(AnotherHistory, IsNoCopyThatAnOperatorHadPublishedAgain) {
  publish({"a", "b"});
  const auto consumer = make_consumer(options());
  consumer->run_once();
  // As if the producer's clock had been set back between the two.
  test::RawSqlite{sqlite::path(ledger.store)}.run(
      "UPDATE inbox_positions SET recorded_at = recorded_at - 3600000000");
  Shop shop{dir.file("shop.db"), server.url()};
  OutboxOperations{shop.store}.republish({.from = GlobalSequence{1}, .to = GlobalSequence{2}});
  shop.publish();

  EXPECT_EQ(consumer->run_once(), (nats::ConsumerTick{.duplicates = 2}));
}

TEST_F(AnotherHistory, IsParkedInOneBatchWithTheFirst) {
  publish({"a"});
  back_up();
  publish({"b", "c"});
  publish_after_restore({"x", "y"});

  const nats::ConsumerTick tick = make_consumer(options())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.handled = 3, .parked = 2}));
}

TEST_F(AnotherHistory, IsADuplicateWhenItComesAgainAndSoIsTheFirst) {
  publish({"a"});
  back_up();
  publish({"b"});
  publish_after_restore({"x"});
  make_consumer(options())->run_once();
  read_again();

  const nats::ConsumerTick tick = make_consumer(options())->run_once();

  EXPECT_EQ(tick, (nats::ConsumerTick{.duplicates = 3}));
  EXPECT_THAT(ledger.lines(), ElementsAre("a@1", "b@2"));
  EXPECT_THAT(parked(), SizeIs(1));
}

TEST_F(AnotherHistory, OfACopyInAStreamOfItsOwnIsParked) {
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
      relay.run_once();
      const OutboxStatus status = operations.status();
      if (status.stopped > 0) operations.adopt(PartitionId{});
      return status.pending + status.in_flight + status.retrying == 0;
    }));
  }
  nats::ConsumerTick total = make_consumer(options())->run_once();
  total += make_consumer(options("COPY"))->run_once();

  EXPECT_EQ(total, (nats::ConsumerTick{.handled = 4, .parked = 2}));
  EXPECT_THAT(parked(), SizeIs(2)) << "both histories are there, and none is lost";
}

}  // namespace
}  // namespace stela::consumer_history_test
