// Answers to a consumer that a broker gives seldom, or newer ones do: from one that is faked.
#include "nats/fake_jetstream.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/recording_sinks.hpp"

#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::consumer_answers_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

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

  test::TempDir dir;
  test::FakeJetStream broker;
  test::RecordingLog log;
  test::Ledger ledger{dir.file("billing.db"), {.log = &log}};
};

TEST_F(FakeBroker, SaysThatNobodyRespondsOnceItsConsumerWasMadeAnew) {
  nats::Consumer consumer{ledger.store, options()};
  consumer.run_once();
  broker.delete_consumer();

  // The request that is open has to end first.
  std::string problem;
  test::eventually([&] {
    problem = test::message_of<BrokerFailed>([&] { consumer.run_once(); });
    return problem != "nothing was thrown";
  });

  EXPECT_EQ(problem, "asking the stream 'SHOP' for messages failed: no responders");
}

/// Whoever may subscribe to the subject may answer.
TEST_F(FakeBroker, WithoutAConfigurationOfTheStreamIsReported) {
  const std::string state = R"("state":{"messages":1,"bytes":9,"first_seq":1,"last_seq":1})";
  nats::Consumer consumer{ledger.store, options()};
  consumer.run_once();
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
    EXPECT_THAT(test::message_of<BrokerFailed>([&] { other.run_once(); }),
                HasSubstr("reading the JetStream stream 'SHOP' failed"))
        << answer;
    EXPECT_THAT(test::message_of<BrokerFailed>(read),
                HasSubstr("reading the JetStream stream 'SHOP' failed"))
        << answer;
  }
}

class Refusal : public FakeBroker,
                public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(Refusal, IsSaidAndNotRepeatedWithoutAPause) {
  const auto [status, description] = GetParam();
  broker.refuse(status, description);
  nats::Consumer consumer{ledger.store, options()};

  std::chrono::steady_clock::time_point begun;
  EXPECT_TRUE(test::eventually([&] {
    begun = std::chrono::steady_clock::now();
    return test::message_of<BrokerFailed>([&] { consumer.run_once(); }) != "nothing was thrown";
  }));
  const int before = broker.requests();
  {
    std::jthread running{[&](std::stop_token stop) { consumer.run(stop); }};
    test::eventually([&] { return broker.requests() >= before + 8; });
  }

  // After pauses of 20, 40 and 80 ms, each up to a quarter shorter by chance: a consumer that is
  // gone is made anew once.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 105ms);
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
