// Requests for messages that the broker ends before it sends what it owes to them.
#include "nats/middleman.hpp"
#include "nats/shop_at_broker.hpp"
#include "support/recording_sinks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::consumer_status_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// Batches of ten, and twenty of them with one request.
constexpr int asked = 200;

class EndedEarly : public test::ShopAtBroker {
 protected:
  nats::ConsumerOptions options() const {
    auto with = defaults();
    with.api.prefix = test::Middleman::prefix;
    with.batch_size = 10;
    return with;
  }
  void place(int count) {
    for (int i = 0; i < count; ++i) shop.place(std::to_string(i));
    shop.publish();
  }
  /// Until so many orders are handled; how many requests for messages that took.
  std::size_t consume(std::size_t orders) {
    nats::Consumer consumer{ledger.store, options()};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    EXPECT_TRUE(test::eventually([&] {
      consumer.run_once();
      return ledger.lines().size() == orders;
    }));
    return early.requests().size();
  }

  test::Middleman early{server.url()};
  test::RecordingLog log;
  Ledger ledger{dir.file("billing.db"), {.log = &log}};
};

TEST_F(EndedEarly, AsCompletedGivesAllOfTheBatch) {
  place(2 * asked);
  early.say("409", "Batch Completed", 0, 10);

  EXPECT_LE(consume(2 * asked), 4U);
}

TEST_F(EndedEarly, ForLackOfRoomReturnsTheMessagesThatFit) {
  place(30);
  early.say("409", "Message Size Exceeds MaxBytes", 0, 3);

  consume(30);

  EXPECT_THAT(early.requests(), Each(HasSubstr("\"max_bytes\":1114112,")));
}

TEST_F(EndedEarly, ByItsTimeReturnsTheMessagesSoFar) {
  place(7);
  early.say("408", "Request Timeout", asked - 7, 1);

  EXPECT_LE(consume(7), 2U);
}

TEST_F(EndedEarly, WithNothingToComeIsTrouble) {
  early.say("409", "Batch Completed", asked, 1);
  nats::Consumer consumer{ledger.store, options()};

  EXPECT_THROW(consumer.run_once(), BrokerFailed);
}

}  // namespace
}  // namespace stela::consumer_status_test
