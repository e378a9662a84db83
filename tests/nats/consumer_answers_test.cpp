// Answers to a consumer that a broker gives seldom, or newer ones do: from one that is faked.
#include "nats/fake_jetstream.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/recording_sinks.hpp"

#include <stela/nats/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::consumer_answers_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Answers as the table says.
class FakeBroker : public ::testing::Test {
 protected:
  nats::ConsumerOptions options() const {
    return {.url = broker.url(),
            .name = "billing",
            .stream = "SHOP",
            .retry_backoff = 20ms,
            .retry_backoff_max = 10'000ms};
  }
  /// A message of the broker's that waits in the inbox and is due.
  void hold_one() {
    test::RawSqlite{sqlite::path(ledger.store)}.run(
        "INSERT INTO inbox_held (consumer, source, stream, version, previous, event_id, "
        "broker_stream, broker_sequence, size, held_at, due_at) "
        "VALUES (1, 'shop', 'order-1', 1, 0, zeroblob(16), 'SHOP', 1, 2, 0, 0)");
  }

  test::TempDir dir;
  test::FakeJetStream broker;
  test::RecordingLog log;
  test::Ledger ledger{dir.file("billing.db"), {.log = &log}};
  nats::InboxOperations inbox{ledger.store};
};

TEST_F(FakeBroker, WithAConsumerOfANewerServerThatIsAnotherIsRefused) {
  const auto refusal = [this](const std::string& members) {
    broker.configure(members);
    nats::Consumer consumer{ledger.store, options()};
    try {
      consumer.poll();
      return std::string{"none"};
    } catch (const UsageError& e) {
      return std::string{e.what()};
    }
  };
  EXPECT_EQ(refusal(""), "none");
  EXPECT_THAT(refusal(R"(,"filter_subjects":["shop.a","shop.b"])"),
              HasSubstr("filter_subject is 'shop.a, shop.b' and should be ''"));
  EXPECT_THAT(refusal(R"(,"priority_policy":"pinned_client")"),
              HasSubstr("priority_policy is pinned_client and should be none"));
  EXPECT_THAT(refusal(R"(,"backoff":[1000000000])"), HasSubstr("backoff is set"));
}

TEST_F(FakeBroker, WithFewerReplicasOfTheConsumerThanOfTheStreamIsRefused) {
  const auto refusal = [this](const std::string& members) {
    broker.configure(members);
    nats::Consumer consumer{ledger.store, options()};
    return test::message_of<UsageError>([&] { consumer.poll(); });
  };
  broker.replicate(3);

  EXPECT_THAT(refusal(R"(,"num_replicas":1)"),
              AllOf(HasSubstr("num_replicas is 1 and should be 3, as the stream's"),
                    HasSubstr("--replicas=3")));
  EXPECT_EQ(refusal(R"(,"num_replicas":0)"), "nothing was thrown") << "as many as the stream";
  EXPECT_EQ(refusal(R"(,"num_replicas":3)"), "nothing was thrown");
}

TEST_F(FakeBroker, WithAPausedConsumerSaysSoUntilThatEnds) {
  broker.configure(R"(,"pause_until":"2126-01-01T00:00:00Z")");
  broker.tell(R"(,"paused":true,"pause_remaining":3600000000000)");
  nats::Consumer consumer{ledger.store, options()};
  std::mutex mutex;
  std::string state;
  consumer.on_tick([&](const nats::ConsumerTick& tick) {
    const std::lock_guard lock{mutex};
    state = to_string(tick.broker);
  });
  const auto becomes = [&](const std::string& expected) {
    return test::eventually([&] {
      const std::lock_guard lock{mutex};
      return state.starts_with(expected);
    });
  };

  {
    const std::jthread running{[&](std::stop_token stop) { consumer.run(stop); }};
    EXPECT_TRUE(
        becomes("misconfigured: the consumer 'billing' of the stream 'SHOP' is paused "
                "until 2126-01-01T00:00:00Z"));
    broker.tell("");
    EXPECT_TRUE(becomes("connected"));
  }

  EXPECT_THAT(log.entries(), ElementsAre(AllOf(StartsWith("error consumer.misconfigured "),
                                               HasSubstr("'nats consumer resume SHOP billing'")),
                                         StartsWith("info consumer.broker_back ")));
}

TEST_F(FakeBroker, ThatAnswersWithAnotherMessageLosesNone) {
  broker.give_message(
      R"({"message":{"subject":"shop.a","seq":2,"data":"e30=","time":"2026-01-01T00:00:00Z"}})");
  nats::Consumer consumer{ledger.store, options()};
  hold_one();

  EXPECT_EQ(consumer.poll().lost, 0);

  EXPECT_THAT(inbox.held(), SizeIs(1));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("warning consumer.trouble")));
}

TEST_F(FakeBroker, ThatRefusesAfterAMessageWasLostLeavesTheNextPollToSaySo) {
  broker.give_message(
      R"({"error":{"code":404,"err_code":10037,"description":"no message found"}})");
  broker.refuse("400", "Bad Request");
  nats::Consumer consumer{ledger.store, options()};
  hold_one();
  EXPECT_THROW(consumer.poll(), BrokerFailed);

  broker.refuse("", "");
  const nats::ConsumerTick tick = consumer.poll();

  EXPECT_EQ(tick, (nats::ConsumerTick{.lost = 1}));
  EXPECT_EQ(consumer.poll(), nats::ConsumerTick{});
}

TEST_F(FakeBroker, ReportsAConsumerWithoutResponderAsMissingAtOnce) {
  nats::Consumer consumer{ledger.store, options()};
  consumer.poll();
  broker.delete_consumer();

  std::string problem;
  try {
    consumer.poll();
  } catch (const BrokerFailed& e) {
    problem = e.what();
  }

  EXPECT_EQ(problem, "the stream 'SHOP' has no consumer 'billing' any more");
}

/// Whoever may subscribe to the subject may answer.
TEST_F(FakeBroker, WithoutAConfigurationOfTheStreamIsReported) {
  const std::string state = R"("state":{"messages":1,"bytes":9,"first_seq":1,"last_seq":1})";
  nats::Consumer consumer{ledger.store, options()};
  consumer.poll();
  const std::vector<std::string> answers{"{}",
                                         R"({"config":null})",
                                         R"({"config":[]})",
                                         '{' + state + '}',
                                         R"({"state":null})",
                                         "[]",
                                         "7",
                                         "no JSON"};
  nats::StreamReader reader{{.url = broker.url(), .prefix = "shop", .stream = "SHOP"}};

  for (const std::string& answer : answers) {
    broker.tell_of_stream(answer);
    nats::Consumer other{ledger.store, options()};
    const auto read = [&] { reader.read(PartitionId{}, [](const FoundMessage&) {}); };
    EXPECT_THAT(test::message_of<BrokerFailed>([&] { other.poll(); }),
                HasSubstr("reading the JetStream stream 'SHOP' failed"))
        << answer;
    EXPECT_THAT(test::message_of<BrokerFailed>(read),
                HasSubstr("reading the JetStream stream 'SHOP' failed"))
        << answer;
  }
}

TEST_F(FakeBroker, WithoutANameOfTheReadersConsumerIsReported) {
  nats::StreamReader reader{{.url = broker.url(), .prefix = "shop", .stream = "SHOP"}};
  broker.tell_of_stream(
      R"({"config":{"name":"SHOP","subjects":["shop.>"],"retention":"limits","storage":"file",)"
      R"("num_replicas":1},"state":{"messages":1,"bytes":9,"first_seq":1,"last_seq":1}})");
  broker.make_consumers(R"({"num_pending":1})");

  EXPECT_THAT(test::message_of<BrokerFailed>(
                  [&] { reader.read(PartitionId{}, [](const FoundMessage&) {}); }),
              HasSubstr("the answer has no name"));
}

class Refusal : public FakeBroker,
                public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(Refusal, IsSaidAndNotRepeatedWithoutAPause) {
  const auto [status, description] = GetParam();
  broker.refuse(status, description);
  nats::Consumer consumer{ledger.store, options()};

  EXPECT_THROW(consumer.poll(), BrokerFailed);
  const auto begun = std::chrono::steady_clock::now();
  const int before = broker.requests();
  {
    std::jthread running{[&](std::stop_token stop) { consumer.run(stop); }};
    test::eventually([&] { return broker.requests() >= before + 4; });
  }

  // After pauses of 20, 40 and 80 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 140ms);
  EXPECT_THAT(log.entries(), Contains(HasSubstr("error consumer.broker_down")));
}

INSTANTIATE_TEST_SUITE_P(
    All, Refusal,
    ::testing::Values(std::pair{"400", "Bad Request"}, std::pair{"404", "No Messages"},
                      std::pair{"408", "Request Timeout"}, std::pair{"409", "Consumer Deleted"},
                      std::pair{"409", "Exceeded MaxRequestBatch of 10"},
                      std::pair{"409", "Exceeded MaxRequestExpires of 1s"},
                      std::pair{"409", "Exceeded MaxRequestMaxBytes of 1000"},
                      std::pair{"409", "Exceeded MaxWaiting"},
                      std::pair{"409", "Exceeded MaxAckPending"},
                      std::pair{"409", "Consumer is push based"},
                      std::pair{"409", "Leadership Change"}, std::pair{"409", "Server Shutdown"},
                      std::pair{"503", ""}));

}  // namespace
}  // namespace stela::consumer_answers_test
