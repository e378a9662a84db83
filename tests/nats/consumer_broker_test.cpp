// What a consumer says of its broker, to its listener, its log and its metrics.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/inbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace stela::consumer_broker_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ConsumersBroker : public ::testing::Test {
 protected:
  nats::ConsumerOptions options(const std::string& url) const {
    return {.url = url,
            .name = "billing",
            .stream = "SHOP",
            .retry_backoff = 20ms,
            .retry_backoff_max = 50ms};
  }
  void make_stream() { test::JetStream{server.url()}.make_stream("SHOP", "shop.>"); }

  void run(nats::Consumer& consumer, const std::function<void()>& meanwhile) {
    consumer.on_tick([this](const nats::ConsumerTick& tick) {
      const std::lock_guard lock{mutex};
      last = to_string(tick.broker);
    });
    const std::jthread running{[&](std::stop_token stop) { consumer.run(stop); }};
    meanwhile();
  }
  bool becomes(const std::string& state) {
    return test::eventually([&] {
      const std::lock_guard lock{mutex};
      return last.starts_with(state);
    });
  }
  double gauge() const { return metrics.gauges().at("stela_consumer_broker_up"); }

  test::TempDir dir;
  test::NatsServer server;
  test::RecordingLog log;
  test::RecordingMetrics metrics;
  Ledger ledger{dir.file("billing.db"), {.log = &log, .metrics = &metrics}};
  std::mutex mutex;
  /// Guarded by mutex.
  std::string last;
};

TEST_F(ConsumersBroker, IsMisconfiguredUntilItHasTheStream) {
  nats::Consumer consumer{ledger.store, options(server.url())};

  run(consumer, [&] {
    EXPECT_TRUE(becomes("misconfigured: reading the JetStream stream 'SHOP' failed: "));
    make_stream();
    EXPECT_TRUE(becomes("connected"));
  });

  EXPECT_THAT(log.entries(),
              ElementsAre(StartsWith("error consumer.misconfigured consumer=billing stream=SHOP "
                                     "problem=reading the JetStream stream 'SHOP' failed: "),
                          StartsWith("info consumer.broker_back consumer=billing stream=SHOP ")));
  EXPECT_EQ(gauge(), 1);
}

/// Attempts change nothing about it.
TEST_F(ConsumersBroker, WithoutTheStreamIsNotReadSinceTheConsumerWasMade) {
  nats::Consumer consumer{ledger.store, options(server.url())};
  const auto unread_since = [&] {
    return nats::InboxOperations{ledger.store}.status().at(0).readers.at(0).unread_since;
  };

  const auto made = unread_since();
  ASSERT_TRUE(made);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(consumer.run_once(), Error);
  EXPECT_EQ(unread_since(), made);

  make_stream();
  consumer.run_once();
  EXPECT_GT(unread_since(), made);
}

TEST_F(ConsumersBroker, IsMisconfiguredForAFilterThatMatchesNothingOfTheStream) {
  make_stream();
  nats::ConsumerOptions mistyped = options(server.url());
  mistyped.filter_subject = "shpo.order.placed";
  nats::Consumer consumer{ledger.store, mistyped};

  run(consumer, [&] {
    EXPECT_TRUE(
        becomes("misconfigured: making a consumer of the stream 'SHOP' "
                "(JetStream error 10093) failed: no subject of the stream matches the "
                "filter_subject 'shpo.order.placed'; correct it"));
  });
}

TEST_F(ConsumersBroker, IsDownWithoutAListener) {
  nats::Consumer consumer{ledger.store, options("nats://127.0.0.1:1")};

  run(consumer, [&] { EXPECT_TRUE(becomes("down: connecting to nats://127.0.0.1:1: ")); });

  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("error consumer.broker_down consumer=billing "
                                                   "stream=SHOP problem=connecting to ")));
  EXPECT_EQ(gauge(), 0);
}

TEST_F(ConsumersBroker, IsDownWhileItsServerIs) {
  make_stream();
  nats::Consumer consumer{ledger.store, options(server.url())};

  run(consumer, [&] {
    EXPECT_TRUE(becomes("connected"));
    server.kill();
    EXPECT_TRUE(becomes("down: "));
    server.start_again();
    EXPECT_TRUE(becomes("connected"));
  });

  ASSERT_GE(log.entries().size(), 2U);
  EXPECT_THAT(log.entries().front(), StartsWith("error consumer.broker_down "));
  EXPECT_THAT(log.entries().back(), StartsWith("info consumer.broker_back "));
  EXPECT_EQ(gauge(), 1);
}

TEST_F(ConsumersBroker, IsToldByAPollToo) {
  make_stream();
  nats::Consumer consumer{ledger.store, options(server.url())};

  EXPECT_TRUE(consumer.run_once().broker.is_connected());

  EXPECT_THAT(log.entries(), IsEmpty());
  EXPECT_EQ(gauge(), 1);
}

}  // namespace
}  // namespace stela::consumer_broker_test
