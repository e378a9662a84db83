// How long a message waits for what the broker says is on its way, while others are due.
#include "nats/shop_at_broker.hpp"
#include "support/secret_file.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stela::consumer_patience_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PatienceAmongOthers : public test::ShopAtBroker {
 protected:
  /// Each of these fails for ever, and is due at each turn.
  void place_failing_orders(int count) {
    for (int i = 0; i < count; ++i) shop.place(std::to_string(i));
    shop.publish();
  }
  void publish(int messages) {
    ASSERT_TRUE(test::eventually([&] {
      shop.publish();
      return broker.count("SHOP") == messages;
    }));
  }
  void poll_for(nats::Consumer& consumer, std::chrono::seconds time) {
    for (auto left = time; left.count() > 0; left -= 10s) {
      total += consumer.poll();
      clock.advance(10s);
    }
  }

  testing::ManualClock clock;
  Ledger ledger{dir.file("billing.db"), {.clock = &clock}};
  nats::ConsumerTick total;
};

TEST_F(PatienceAmongOthers, EndsThoughOthersAreDueAtEachTurn) {
  shop.publish();
  auto with = defaults();
  with.retry_backoff_max = with.retry_backoff;
  with.max_attempts = 1'000'000;
  nats::Consumer consumer{ledger.store, with};
  consumer.on<OrderPlaced>([](Transaction&, const auto&) { throw std::runtime_error{"not yet"}; });
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  consumer.poll();
  for (int i = 0; i < 2; ++i) shop.send_parcel();
  shop.publish();
  broker.take("SHOP", "billing", 1);
  place_failing_orders(10);

  // The patience is 60 s.
  poll_for(consumer, 590s);
  const auto meanwhile = ledger.lines();
  poll_for(consumer, 40s);

  EXPECT_GT(total.failed, 10 * 50);
  EXPECT_THAT(meanwhile, IsEmpty());
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@2 order.shipped"));
  EXPECT_EQ(total.gaps, 1);
}

TEST_F(PatienceAmongOthers, EndsOnceForAllThatIsMissingInAStream) {
  nats::Consumer consumer{ledger.store, defaults()};
  consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
  for (int i = 0; i < 7; ++i) shop.send_parcel();
  publish(7);
  for (const int sequence : {2, 4, 6}) broker.erase("SHOP", sequence);

  // The patience is 60 s.
  poll_for(consumer, 60s);
  const auto meanwhile = ledger.lines();
  poll_for(consumer, 30s);

  EXPECT_THAT(meanwhile, ElementsAre("parcel-1@1 order.shipped"));
  EXPECT_THAT(ledger.lines(), ElementsAre("parcel-1@1 order.shipped", "parcel-1@3 order.shipped",
                                          "parcel-1@5 order.shipped", "parcel-1@7 order.shipped"));
  EXPECT_EQ(total.gaps, 3);
}

/// nats.c alone would wait for 5 s.
TEST_F(PatienceAmongOthers, WaitsForAnAnswerOfAnotherStreamNoLongerThanForAConnection) {
  const test::NatsServer strict{
      "no_auth_user: shop\n"
      "authorization { users: [ { user: shop, password: p }, { user: reader, password: p, "
      "permissions: { publish: { deny: [\"$JS.API.STREAM.INFO.OLD\"] } } } ] }"};
  test::Shop sender{dir.file("sender.db"), strict.url()};
  sender.publish();
  auto with = defaults();
  with.url = strict.url();
  test::write_secret(dir.file("password"), "p");
  with.credentials = {.user = "reader", .password_file = dir.file("password")};
  with.connect_timeout = 200ms;
  with.start = nats::ConsumerStart::now;
  auto old = with;
  old.stream = "OLD";
  { const nats::Consumer of_another_time{ledger.store, old}; }
  for (int i = 0; i < 2; ++i) sender.send_parcel();
  test::JetStream{strict.url()}.make_consumer("SHOP", "billing", [](jsConsumerConfig& config) {
    config.DeliverPolicy = js_DeliverByStartSequence;
    config.OptStartSeq = 2;
  });
  sender.publish();
  nats::Consumer consumer{ledger.store, with};

  const auto begun = std::chrono::steady_clock::now();
  consumer.poll();
  const auto took = std::chrono::steady_clock::now() - begun;

  EXPECT_LT(took, 4s);
}

/// Counts what is asked of the consumers at the broker.
class Questions {
 public:
  explicit Questions(const std::string& url) {
    natsConnection_ConnectTo(&connection_, url.c_str());
    natsConnection_SubscribeSync(&subscription_, connection_, "$JS.API.CONSUMER.INFO.>");
    natsConnection_Flush(connection_);
  }
  ~Questions() {
    natsSubscription_Destroy(subscription_);
    natsConnection_Destroy(connection_);
  }
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;
  int count() {
    natsConnection_Flush(connection_);
    int messages = -1;
    natsSubscription_GetPending(subscription_, &messages, nullptr);
    return messages;
  }

 private:
  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
};

TEST_F(PatienceAmongOthers, AsksTheBrokerOnceForAllThatWait) {
  shop.publish();
  auto with = defaults();
  with.batch_size = 1;
  nats::Consumer consumer{ledger.store, with};
  consumer.poll();
  const int streams = 40;
  for (int i = 0; i < streams; ++i) shop.place(std::to_string(i));
  publish(streams);
  for (int i = 0; i < streams; ++i) shop.ship(std::to_string(i));
  publish(2 * streams);
  broker.take("SHOP", "billing", streams);
  consumer.poll();
  ASSERT_THAT(nats::InboxOperations{ledger.store}.held(), SizeIs(streams));
  poll_for(consumer, 60s);
  Questions questions{server.url()};

  for (int i = 0; i < streams; ++i) consumer.poll();

  // Each poll ends with a question: what it had asked for is dropped.
  const int asked = questions.count() - streams;
  EXPECT_GE(asked, 1);
  EXPECT_LT(asked, streams / 4);
}

}  // namespace
}  // namespace stela::consumer_patience_test
