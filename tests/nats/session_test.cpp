// The life of a publisher's session: when it calls its sink, and when no more.
#include "nats/answers.hpp"
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"
#include "support/secret_file.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace stela::session_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::NatsServer;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

nats::PublisherOptions options_for(const std::string& url) {
  return {.url = url,
          .prefix = "shop",
          .stream = "SHOP",
          .ensure_stream = true,
          .connect_timeout = 1'000ms,
          .publish_timeout = 1'000ms};
}

/// Of a server whose user `shop` may do as `permissions` say.
std::string config_of_user(const std::string& permissions) {
  return "authorization { users: [ { user: shop, password: p" + permissions + " } ] }";
}

nats::Credentials credentials_in(const test::TempDir& dir) {
  test::write_secret(dir.file("password"), "p");
  return {.user = "shop", .password_file = dir.file("password")};
}

std::string stream_of(PartitionId partition) {
  return "SHOP_" + partition.label();
}

/// Stays in the call that brings the answer to request 1 for a while, or until its session is over.
class SlowSink final : public AnswerSink {
 public:
  void take(Answer answer) override {
    std::unique_lock lock{mutex_};
    is_connected_ = is_connected_ || answer.kind == Answer::Kind::connected;
    changed_.notify_all();
    if (answer.request != 1) return;
    is_inside_ = true;
    changed_.wait_for(lock, 300ms, [this] { return is_over_; });
    is_inside_ = false;
  }

  bool wait_until_connected() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 10s, [this] { return is_connected_; });
  }
  bool wait_until_inside() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 10s, [this] { return is_inside_; });
  }
  /// The publisher said that its session is over; true if a call was under way.
  bool end() {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
    changed_.notify_all();
    return is_inside_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_connected_ = false;
  bool is_inside_ = false;
  bool is_over_ = false;
};

TEST(PublishersSession, EndsWhenItsSinkIsCalledNoMore) {
  const NatsServer server;
  SlowSink sink;
  nats::Publisher publisher{options_for(server.url())};
  publisher.connect(1, sink);
  ASSERT_TRUE(sink.wait_until_connected());
  publisher.read_back(1, PartitionId{}, 1);
  publisher.flush();
  ASSERT_TRUE(sink.wait_until_inside());

  publisher.disconnect();

  EXPECT_FALSE(sink.end());
}

TEST(PublishersSession, CallsNoRelayThatIsGone) {
  const test::TempDir dir;
  const NatsServer server;
  testing::ManualClock clock;
  test::Shop shop{dir.file("shop.db"), server.url(), {}, {}, {}, {.clock = &clock}};
  auto relay = std::make_unique<Relay>(shop.outbox, shop.publisher);
  shop.place("1");
  ASSERT_EQ(relay->run_once().published, 1);
  server.pause();
  for (int i = 2; i <= 300; ++i) shop.place(std::to_string(i));
  std::int64_t claimed = 0;
  relay->on_tick([&](const RelayTick& tick) {
    claimed += tick.claimed;
    if (claimed == 299) throw std::runtime_error{"the listener"};
  });
  ASSERT_THROW(relay->run({}), std::runtime_error);

  relay.reset();
  server.resume();

  // What comes once the connection is closed is dropped, by a server that is slow.
  JetStream broker{server.url()};
  EXPECT_TRUE(test::eventually([&] { return broker.count("SHOP") > 1; }));
  // Another relay takes over, and finds out what was stored.
  clock.advance(1min);
  EXPECT_TRUE(test::eventually([&] {
    shop.publish();
    return OutboxOperations{shop.store}.status().published == 300;
  }));
  EXPECT_EQ(broker.count("SHOP"), 300);
}

TEST(PublishersSession, ReadsManyPartitionsBackAtOnceOverALongWay) {
  constexpr int partitions = 64;
  const NatsServer server;
  JetStream broker{server.url()};
  for (int i = 0; i < partitions; ++i) {
    const PartitionId partition = PartitionId::at(i, partitions);
    const std::string prefix = "shop_" + partition.label();
    broker.make_stream(stream_of(partition), prefix + ".>");
    for (int j = 0; j < 5; ++j) broker.publish(prefix + ".placed", "{}");
  }
  test::TcpProxy proxy{server.port()};
  proxy.delay(25ms);
  test::Answers answers;
  nats::Publisher publisher{options_for(proxy.url())};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Answer::Kind::connected);

  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < partitions; ++i) {
    publisher.read_back(static_cast<std::uint64_t>(i) + 1, PartitionId::at(i, partitions), 1);
  }
  publisher.flush();

  for (std::uint64_t request = 1; request <= partitions; ++request) {
    const Answer answer = answers.wait_for(request);
    ASSERT_EQ(answer.kind, Answer::Kind::read_back) << answer.detail;
    EXPECT_EQ(answer.found.size(), 5U);
  }
  // Two round trips of 50 ms each; one after the other they would be 384.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

TEST(PublishersSession, HoldsOnlyThePartitionsThatItMayNotLookAt) {
  const NatsServer server{
      config_of_user(", permissions: { publish: { deny: [\"$JS.API.STREAM.INFO.SHOP_p01\", "
                     "\"$JS.API.STREAM.INFO.SHOP_p03\"] } }")};
  const test::TempDir dir;
  auto options = options_for(server.url());
  options.credentials = credentials_in(dir);
  test::Answers answers;
  nats::Publisher publisher{options};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Answer::Kind::connected);
  answers.clear();

  constexpr int partitions = 5;
  const auto read_back = [&](std::uint64_t request, int index) {
    publisher.read_back(request, PartitionId::at(index, partitions), 1);
  };
  for (int i = 0; i < partitions; ++i) read_back(static_cast<std::uint64_t>(i) + 1, i);

  for (const std::uint64_t well : {1, 3, 5}) {
    EXPECT_EQ(answers.wait_for(well).kind, Answer::Kind::read_back) << well;
  }
  for (const std::uint64_t denied : {2, 4}) {
    const Answer answer = answers.wait_for(denied);
    EXPECT_EQ(answer.kind, Answer::Kind::misconfigured) << denied;
    EXPECT_THAT(answer.detail,
                HasSubstr("\"$JS.API.STREAM.INFO.SHOP_p0" + std::to_string(denied - 1) + "\""));
  }
  EXPECT_FALSE(answers.find(0)) << "the session goes on";
}

/// A relay with four partitions whose user may not publish to one of them.
class DeniedSubject : public ::testing::Test {
 protected:
  /// Of the partitions, by their numbers: what isn't published.
  std::vector<std::int64_t> waiting() {
    std::vector<std::int64_t> counts;
    for (const PartitionStatus& one : operations.status().partitions) {
      counts.push_back(one.pending + one.in_flight + one.retrying);
    }
    return counts;
  }

  const test::TempDir dir;
  NatsServer server{config_of_user(", permissions: { publish: { deny: \"shop_p01.>\" } }")};
  test::RecordingLog log;
  test::Shop shop{dir.file("shop.db"),
                  server.url(),
                  {.partition_count = 4},
                  {.credentials = credentials_in(dir), .publish_timeout = 10'000ms},
                  {.publish_timeout = 10'000ms, .retry_backoff = 5ms, .retry_backoff_max = 50ms},
                  {.log = &log}};
  OutboxOperations operations{shop.store, {.who = "ann"}};
};

TEST_F(DeniedSubject, BlocksOnlyItsOwnPartition) {
  const auto begun = std::chrono::steady_clock::now();
  const auto is_held_again = [&] {
    shop.publish();
    return operations.status().partitions.at(1).attempts >= 4;
  };
  for (int i = 0; i < 20; ++i) shop.place(std::to_string(i));
  ASSERT_TRUE(test::eventually(is_held_again));
  for (int i = 20; i < 40; ++i) shop.place(std::to_string(i));

  EXPECT_TRUE(test::eventually([&] {
    shop.publish();
    const auto left = waiting();
    return left[0] + left[2] + left[3] == 0;
  }));

  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s) << "nobody waited for an answer";
  EXPECT_GT(waiting()[1], 0);
  const PartitionStatus denied = operations.status().partitions.at(1);
  EXPECT_THAT(denied.last_error, HasSubstr("Publish to \"shop_p01.order.placed\""));
  EXPECT_THAT(log.entries(),
              Contains(AllOf(StartsWith("error relay.misconfigured"), HasSubstr("partition=p01"),
                             HasSubstr("Publish to \"shop_p01.order.placed\""))));
  EXPECT_THAT(log.entries(), Each(Not(HasSubstr("relay.broker_down"))));
}

TEST_F(DeniedSubject, IsPublishedToOnceItIsAllowed) {
  for (int i = 0; i < 20; ++i) shop.place(std::to_string(i));
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return !operations.status().partitions.at(1).last_error.empty();
  }));
  server.kill();
  std::ofstream{server.folder() + "/server.conf"} << "jetstream { store_dir: \"" << server.folder()
                                                  << "\" }\n"
                                                  << config_of_user("");
  server.start_again();

  EXPECT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().published == 20;
  }));
  EXPECT_EQ(operations.status().partitions.at(1).last_error, "");
}

/// One partition without a fence: its subjects are those of its events.
TEST(PublishersSession, AnswersForEachMessageOfADeniedSubject) {
  const NatsServer server{
      config_of_user(", permissions: { publish: { deny: \"shop.order.shipped\" } }")};
  const test::TempDir dir;
  auto options = options_for(server.url());
  options.fence = Fence::none;
  options.credentials = credentials_in(dir);
  test::Answers answers;
  nats::Publisher publisher{options};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Answer::Kind::connected);
  answers.clear();

  constexpr std::uint64_t count = 200;
  for (std::uint64_t request = 1; request <= count; ++request) {
    test::publish_event(publisher, request, request % 2 == 0 ? "order.shipped" : "order.placed");
  }
  publisher.flush();

  for (std::uint64_t request = 1; request <= count; ++request) {
    const bool is_denied = request % 2 == 0;
    EXPECT_EQ(answers.wait_for(request).kind,
              is_denied ? Answer::Kind::misconfigured : Answer::Kind::stored)
        << request;
  }
  EXPECT_FALSE(answers.find(0)) << "the session goes on";
}

}  // namespace
}  // namespace stela::session_test
