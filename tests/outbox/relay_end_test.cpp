// A relay that ends while its broker hasn't answered.
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework/error.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>

namespace stela::relay_end_test {
namespace {

using ::testing::HasSubstr;

/// Takes what is published and says nothing of it.
class Mute final : public Publisher {
 public:
  bool can(Fence) const noexcept override { return true; }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    sink_ = &sink;
    session_ = session;
    sink.take({.session = session, .kind = Answer::Kind::connected});
  }
  void disconnect() noexcept override { sink_ = nullptr; }
  void publish(const OutgoingMessage&) override { ++in_flight; }
  void read_back(std::uint64_t request, PartitionId, std::uint64_t) override {
    sink_->take({.session = session_, .request = request, .kind = Answer::Kind::read_back});
  }
  void probe(std::uint64_t) override {}
  void flush() override {}

  bool is_open() const noexcept { return sink_ != nullptr; }

  int in_flight = 0;

 private:
  AnswerSink* sink_ = nullptr;
  std::uint64_t session_ = 0;
};

class RelayEnd : public ::testing::TestWithParam<Fence> {
 protected:
  test::TempDir dir = test::TempDir::in_memory();
  Store store = sqlite::open(dir.file("shop.db"));
  Outbox outbox{store, {.fence = GetParam()}};
  Mute broker;
};

INSTANTIATE_TEST_SUITE_P(EveryFence, RelayEnd, ::testing::Values(Fence::stream, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(RelayEnd, ClosesItsSessionThoughAListenerThrewWithMessagesInFlight) {
  test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
  auto relay = std::make_unique<Relay>(outbox, broker);
  relay->on_tick([&](const RelayTick&) {
    if (broker.in_flight > 0) throw std::runtime_error{"the listener"};
  });
  ASSERT_THROW(relay->run({}), std::runtime_error);
  ASSERT_TRUE(broker.is_open());

  relay.reset();

  EXPECT_FALSE(broker.is_open()) << "an answer would be given to a relay that is gone";
}

TEST_P(RelayEnd, IsFollowedByAnotherBeginning) {
  Relay relay{outbox, broker, {.publish_timeout = std::chrono::milliseconds{100}}};
  std::stop_source stop;
  stop.request_stop();
  relay.run(stop.get_token());
  ASSERT_FALSE(broker.is_open());

  test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
  relay.run_once();

  EXPECT_GT(broker.in_flight, 0);
}

TEST_P(RelayEnd, IsWhenAnotherRelayMayUseItsPublisher) {
  auto first = std::make_unique<Relay>(outbox, broker, RelayOptions{.worker = "first"});
  Relay second{outbox, broker, {.worker = "second"}};
  first->run_once();

  EXPECT_THAT(test::message_of<UsageError>([&] { second.run_once(); }),
              HasSubstr("another relay of this process works with this publisher"));
  EXPECT_THAT(test::message_of<UsageError>([&] { second.run({}); }), HasSubstr("another relay"));
  EXPECT_TRUE(broker.is_open()) << "the session of the first one";

  first.reset();
  EXPECT_TRUE(second.run_once().broker.is_connected());
}

}  // namespace
}  // namespace stela::relay_end_test
