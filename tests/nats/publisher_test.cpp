// The publisher against a real nats-server: every answer that one gives.
#include "nats/answers.hpp"
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/nats/publisher.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>

namespace stela::publisher_test {
namespace {

using namespace std::chrono_literals;
using test::Answers;
using test::JetStream;
using test::NatsServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Answer::Kind;

constexpr std::string_view store_id = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Publishes events of one stream by hand, as a relay's core would.
class Sender {
 public:
  explicit Sender(nats::PublisherOptions options) : fence_{options.fence}, publisher_{options} {}

  Kind connect() {
    answers.clear();
    publisher_.connect(++session_, answers);
    return answers.wait_for(0).kind;
  }

  /// Sends event `number` behind the message at `after`; its request.
  std::uint64_t send(int number, std::uint64_t after = 0, const std::string& payload = "{}") {
    const std::string id = id_of(number);
    const StoredEvent event{.sequence = GlobalSequence{number},
                            .stream = stream_,
                            .version = StreamVersion{number},
                            .kind = kind_,
                            .id = *Uuid::parse(id),
                            .recorded_at = {},
                            .correlation = {},
                            .causation_id = {},
                            .metadata = {},
                            .published_before = StreamVersion{number - 1},
                            .payload = payload};
    OutgoingMessage message{.request = ++request_,
                            .partition = partition,
                            .event = event,
                            .store_id = store_id,
                            .message_id = id};
    if (fence_ != Fence::none) message.predecessor = Predecessor{after, {}};
    publisher_.publish(message);
    publisher_.flush();
    return request_;
  }
  Answer publish(int number, std::uint64_t after = 0, const std::string& payload = "{}") {
    return answers.wait_for(send(number, after, payload));
  }
  std::uint64_t ask(std::uint64_t from = 1) {
    publisher_.read_back(++request_, partition, from);
    publisher_.flush();
    return request_;
  }
  Answer read_back(std::uint64_t from = 1) { return answers.wait_for(ask(from)); }
  /// Whether one of them comes within the time that it might take.
  bool is_answered(std::initializer_list<std::uint64_t> requests) {
    return test::eventually(
        [&] {
          return std::any_of(requests.begin(), requests.end(), [&](std::uint64_t request) {
            return answers.find(request).has_value();
          });
        },
        1'000ms);
  }

  static std::string id_of(int number) {
    char text[40];
    std::snprintf(text, sizeof text, "01890a5d-ac96-774b-bcce-%012d", number);
    return text;
  }

  PartitionId partition{};
  Answers answers;

 private:
  const Fence fence_;
  nats::Publisher publisher_;
  StreamId stream_ = StreamId::parse("order-7");
  EventKind kind_{.number = 1, .type = "order.placed", .publishes = true};
  std::uint64_t session_ = 0;
  std::uint64_t request_ = 0;
};

nats::PublisherOptions options_for(const std::string& url, Fence fence = Fence::stream) {
  return {.url = url,
          .prefix = "shop",
          .stream = "SHOP",
          .fence = fence,
          .ensure_stream = true,
          .connect_timeout = 1'000ms,
          .publish_timeout = 1'000ms};
}

class Publishing : public ::testing::Test {
 protected:
  /// A sender with a stream that is there.
  std::unique_ptr<Sender> connected(Fence fence = Fence::stream) {
    auto sender = std::make_unique<Sender>(options_for(server.url(), fence));
    EXPECT_EQ(sender->connect(), Kind::connected);
    EXPECT_EQ(sender->read_back().kind, Kind::read_back);
    return sender;
  }

  NatsServer server;
  JetStream broker{server.url()};
};

TEST_F(Publishing, StoresAChainInOrderAndSaysWhere) {
  const auto sender = connected();

  const Answer first = sender->publish(1, 0);
  const Answer second = sender->publish(2, 1);

  EXPECT_EQ(first.kind, Kind::stored);
  EXPECT_EQ(first.broker_sequence, 1U);
  EXPECT_EQ(second.broker_sequence, 2U);
  const auto messages = broker.messages("SHOP");
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].subject, "shop.order.placed");
  EXPECT_EQ(messages[0].headers.at("Nats-Msg-Id"), Sender::id_of(1));
}

TEST_F(Publishing, StoresNothingAfterAGapInThePipeline) {
  const auto sender = connected();

  const auto first = sender->send(1, 0);
  const auto hole = sender->send(2, 7);
  const auto third = sender->send(3, 2);

  EXPECT_EQ(sender->answers.wait_for(first).kind, Kind::stored);
  EXPECT_EQ(sender->answers.wait_for(hole).kind, Kind::stored_before);
  EXPECT_EQ(sender->answers.wait_for(third).kind, Kind::stored_before);
  EXPECT_THAT(sender->answers.wait_for(hole).detail, HasSubstr("10071"));
  EXPECT_THAT(broker.messages("SHOP"), SizeIs(1));
}

TEST_F(Publishing, ReportsAMessageThatWasStoredBefore) {
  const auto sender = connected();
  sender->publish(1, 0);

  EXPECT_EQ(sender->publish(1, 0).kind, Kind::stored_before);
  EXPECT_EQ(sender->publish(1, 1).kind, Kind::stored_before);
  EXPECT_THAT(broker.messages("SHOP"), SizeIs(1));
}

TEST_F(Publishing, KeepsASubjectsOrderInAStreamOfMany) {
  const auto sender = connected(Fence::subject);
  sender->partition = PartitionId{1};
  const Answer first = sender->publish(1, 0);
  sender->partition = PartitionId{2};
  const Answer other = sender->publish(2, 0);
  sender->partition = PartitionId{1};

  const Answer zombie = sender->publish(3, 0);
  const Answer second = sender->publish(4, first.broker_sequence);
  const Answer standing = sender->read_back(second.broker_sequence);

  EXPECT_EQ(first.kind, Kind::stored);
  EXPECT_EQ(other.kind, Kind::stored);
  EXPECT_EQ(zombie.kind, Kind::stored_before);
  EXPECT_EQ(second.broker_sequence, 3U);
  EXPECT_EQ(broker.message("SHOP", 3)->subject, "shop.p00");
  ASSERT_THAT(standing.found, SizeIs(1));
  EXPECT_EQ(standing.last_sequence, 3U);
  EXPECT_EQ(standing.found[0].message_id, Sender::id_of(4));
}

TEST_F(Publishing, ReadsASubjectBackFromWhereItIsAsked) {
  const auto sender = connected(Fence::subject);
  sender->partition = PartitionId{1};
  const std::uint64_t first = sender->publish(1, 0).broker_sequence;
  sender->partition = PartitionId{2};
  sender->publish(2, 0);
  sender->partition = PartitionId{1};
  sender->publish(3, first);
  EXPECT_THAT(sender->read_back(1).found, SizeIs(2));

  // A server of 2.9 says then that the subject has no last message.
  broker.erase("SHOP", 3);
  EXPECT_THAT(sender->read_back(1).found, SizeIs(1));
}

TEST_F(Publishing, LetsTheBrokersWindowDropDuplicatesWithoutAFence) {
  const auto sender = connected(Fence::none);

  EXPECT_EQ(sender->publish(1).kind, Kind::stored);
  EXPECT_EQ(sender->publish(1).kind, Kind::stored_before);
  EXPECT_EQ(sender->publish(2).kind, Kind::stored);
}

TEST_F(Publishing, GivesEachPartitionAStreamOfItsOwn) {
  const auto sender = connected();
  sender->partition = PartitionId{2};
  sender->read_back();

  sender->publish(1, 0);

  EXPECT_EQ(broker.message("SHOP_p01", 1)->subject, "shop_p01.order.placed");
}

TEST_F(Publishing, ReadsBackStoredMessages) {
  const auto sender = connected();
  sender->publish(1, 0);
  sender->publish(2, 1);
  broker.publish("shop.hello", "there");
  broker.erase("SHOP", 1);

  const Answer answer = sender->read_back(1);

  EXPECT_EQ(answer.first_sequence, 2U);
  EXPECT_EQ(answer.last_sequence, 3U);
  ASSERT_THAT(answer.found, SizeIs(2));
  EXPECT_EQ(answer.found[0].broker_sequence, 2U);
  EXPECT_EQ(answer.found[0].message_id, Sender::id_of(2));
  EXPECT_EQ(answer.found[0].store_id, store_id);
  EXPECT_EQ(answer.found[0].sequence.value(), 2);
  EXPECT_TRUE(answer.found[0].is_ours);
  EXPECT_FALSE(answer.found[1].is_ours);
}

TEST_F(Publishing, SaysThatAStreamIsFull) {
  broker.make_stream("SHOP", "shop.>", [](jsStreamConfig& config) { config.MaxMsgs = 1; });
  const auto sender = connected();
  sender->publish(1, 0);

  const Answer answer = sender->publish(2, 1);

  EXPECT_EQ(answer.kind, Kind::full);
  EXPECT_EQ(answer.failure, FailureClass::stream_full);
  EXPECT_THAT(answer.detail, HasSubstr("10077"));
  EXPECT_EQ(sender->read_back().limit, "max_msgs of 'SHOP' is 1");
}

TEST_F(Publishing, NamesTheFullStreamThatItNeverReadsBack) {
  broker.make_stream("SHOP", "shop.>", [](jsStreamConfig& config) {
    config.MaxMsgs = 1;
    config.Discard = js_DiscardNew;
  });
  Sender sender{options_for(server.url(), Fence::none)};
  ASSERT_EQ(sender.connect(), Kind::connected);
  sender.publish(1);

  EXPECT_THAT(sender.publish(2).detail, HasSubstr("; its stream is 'SHOP'"));
}

TEST_F(Publishing, RefusesMessagesThatTheServerNeverTakes) {
  const auto sender = connected();

  const Answer by_server = sender->publish(1, 0, std::string(2'000'000, 'x'));
  EXPECT_EQ(by_server.kind, Kind::refused);
  EXPECT_EQ(by_server.failure, FailureClass::too_large);
  EXPECT_EQ(by_server.size_limit.bytes, 1'048'576);
  EXPECT_EQ(by_server.size_limit.setting, "max_payload of the server");
  broker.update_stream("SHOP", [](jsStreamConfig& config) { config.MaxMsgSize = 2'000; });
  const Answer by_stream = sender->publish(1, 0, std::string(3'000, 'x'));
  EXPECT_EQ(by_stream.kind, Kind::refused);
  EXPECT_EQ(by_stream.failure, FailureClass::too_large);
  EXPECT_THAT(by_stream.detail, HasSubstr("10054"));
  const SizeLimit of_stream = sender->read_back().size_limit;
  EXPECT_EQ(of_stream.bytes, 2'000);
  EXPECT_EQ(of_stream.setting, "max_msg_size of 'SHOP'");
}

TEST_F(Publishing, SaysThatThereIsNoStream) {
  auto options = options_for(server.url());
  options.ensure_stream = false;
  Sender sender{options};
  sender.connect();

  EXPECT_EQ(sender.read_back().kind, Kind::misconfigured);
  EXPECT_THAT(sender.read_back().detail, HasSubstr("there is no JetStream stream 'SHOP'; make it"));
  EXPECT_EQ(sender.publish(1, 0).kind, Kind::misconfigured);
}

TEST_F(Publishing, NeverStoresInAnotherStreamWithTheSubject) {
  const auto sender = connected();
  broker.delete_stream("SHOP");
  broker.make_stream("OTHER", "shop.>");

  const Answer answer = sender->publish(1, 0);

  EXPECT_EQ(answer.kind, Kind::misconfigured);
  EXPECT_THAT(broker.messages("OTHER"), IsEmpty());
}

TEST_F(Publishing, SaysThatAStreamIsSealed) {
  const auto sender = connected();
  broker.update_stream("SHOP", [](jsStreamConfig& config) { config.Sealed = true; });

  EXPECT_EQ(sender->publish(1, 0).kind, Kind::misconfigured);
  EXPECT_THAT(sender->read_back().detail, HasSubstr("is sealed"));
}

TEST_F(Publishing, ShowsThatAStreamWasPurged) {
  const auto sender = connected();
  sender->publish(1, 0);
  broker.purge("SHOP");

  const Answer answer = sender->read_back(1);

  EXPECT_EQ(answer.first_sequence, 2U);
  EXPECT_EQ(answer.last_sequence, 1U);
  EXPECT_THAT(answer.found, IsEmpty());
  EXPECT_EQ(sender->publish(2, 1).kind, Kind::stored);
}

TEST_F(Publishing, ShowsThatAStreamWasMadeAgain) {
  const auto sender = connected();
  sender->publish(1, 0);
  broker.delete_stream("SHOP");
  broker.make_stream("SHOP", "shop.>");

  EXPECT_EQ(sender->publish(2, 1).kind, Kind::stored_before);
  EXPECT_EQ(sender->read_back(1).last_sequence, 0U);
}

TEST_F(Publishing, EndsItsSessionWhenTheServerDiesAndFindsKeptMessages) {
  const auto sender = connected();
  sender->publish(1, 0);
  sender->answers.clear();

  server.kill();
  EXPECT_EQ(sender->answers.wait_for(0).kind, Kind::disconnected);
  EXPECT_EQ(sender->connect(), Kind::disconnected);
  server.start_again();

  EXPECT_EQ(sender->connect(), Kind::connected);
  EXPECT_EQ(sender->read_back(1).last_sequence, 1U);
  EXPECT_EQ(sender->publish(2, 1).kind, Kind::stored);
}

TEST_F(Publishing, GetsNoAnswerFromAPausedServerAndFindsArrivedMessages) {
  const auto sender = connected();
  server.pause();
  const bool answered = sender->is_answered({sender->send(1, 0), sender->ask(1)});
  sender->answers.clear();
  server.resume();
  sender->connect();

  EXPECT_FALSE(answered);
  const bool there = test::eventually([&] { return sender->read_back(1).last_sequence == 1; });
  EXPECT_TRUE(there);
}

TEST_F(Publishing, FindsAStoredMessageWhoseAnswerWasLost) {
  test::TcpProxy proxy{server.port()};
  Sender sender{options_for(proxy.url())};
  sender.connect();
  sender.read_back();

  proxy.lose(test::TcpProxy::Direction::answers);
  const auto request = sender.send(1, 0);
  const bool stored = test::eventually([&] { return broker.messages("SHOP").size() == 1; });
  const bool answered = sender.answers.find(request).has_value();
  proxy.heal();
  sender.connect();

  EXPECT_TRUE(stored);
  EXPECT_FALSE(answered);
  EXPECT_EQ(sender.read_back(1).found.at(0).message_id, Sender::id_of(1));
}

TEST_F(Publishing, SendsNothingThroughAHalfOpenConnectionLater) {
  test::TcpProxy proxy{server.port()};
  Sender sender{options_for(proxy.url())};
  sender.connect();
  sender.read_back();

  proxy.half_open();
  const bool answered = sender.is_answered({sender.send(1, 0), sender.ask(1)});
  proxy.heal();

  EXPECT_FALSE(answered);
  EXPECT_EQ(sender.connect(), Kind::connected);
  EXPECT_THAT(broker.messages("SHOP"), IsEmpty());
  EXPECT_EQ(sender.publish(1, 0).kind, Kind::stored);
}

/// Sends event 1, and again over a new connection before the first has arrived. How often it is in
/// the stream when it has.
std::size_t copies_after_late_bytes(NatsServer& server, Fence fence) {
  JetStream broker{server.url()};
  test::TcpProxy proxy{server.port()};
  auto options = options_for(proxy.url(), fence);
  options.stream_options.duplicate_window = 1s;
  Sender sender{options};
  sender.connect();
  sender.read_back();
  proxy.linger(2'500ms);
  sender.send(1, 0);
  EXPECT_EQ(sender.connect(), Kind::connected);
  EXPECT_EQ(sender.publish(1, 0).kind, Kind::stored);
  test::eventually([&] { return broker.messages("SHOP").size() > 1; }, 4s);
  return broker.messages("SHOP").size();
}

TEST_F(Publishing, RefusesLateBytesOfADeadConnectionUnderEachFence) {
  EXPECT_EQ(copies_after_late_bytes(server, Fence::stream), 1U);
  broker.delete_stream("SHOP");
  EXPECT_EQ(copies_after_late_bytes(server, Fence::none), 2U);
}

TEST_F(Publishing, WorksOverASlowNetworkInSmallPieces) {
  test::TcpProxy proxy{server.port()};
  proxy.delay(2ms);
  proxy.slice(7);
  Sender sender{options_for(proxy.url())};

  EXPECT_EQ(sender.connect(), Kind::connected);
  EXPECT_EQ(sender.read_back().kind, Kind::read_back);
  EXPECT_EQ(sender.publish(1, 0).kind, Kind::stored);
}

TEST_F(Publishing, SaysWhyAStreamIsDangerous) {
  struct Case {
    std::function<void(jsStreamConfig&)> change;
    std::string reason;
  };
  const Case cases[] = {
      {[](auto& c) { c.Storage = js_MemoryStorage; }, "in memory"},
      {[](auto& c) { c.Retention = js_WorkQueuePolicy; }, "limits retention"},
      {[](auto& c) { c.Discard = js_DiscardOld, c.MaxMsgs = 10; }, "discard policy to new"},
      {[](auto& c) { c.MaxMsgsPerSubject = 1; }, "max_msgs_per_subject"},
      {[](auto& c) { c.NoAck = true; }, "without no_ack"},
  };
  for (const Case& wrong : cases) {
    broker.make_stream("SHOP", "shop.>", wrong.change);
    Sender sender{options_for(server.url())};
    sender.connect();
    const Answer answer = sender.read_back();
    EXPECT_EQ(answer.kind, Kind::misconfigured) << wrong.reason;
    EXPECT_EQ(answer.failure, FailureClass::stream_settings) << wrong.reason;
    EXPECT_THAT(answer.detail, HasSubstr(wrong.reason));
    broker.delete_stream("SHOP");
  }
  broker.make_stream("SHOP", "elsewhere.>");
  Sender sender{options_for(server.url())};
  sender.connect();
  const Answer elsewhere = sender.read_back();
  EXPECT_EQ(elsewhere.failure, FailureClass::subject);
  EXPECT_THAT(elsewhere.detail, HasSubstr("doesn't take the subjects 'shop.>'"));
}

TEST_F(Publishing, MakesTheStreamAsItIsTold) {
  auto options = options_for(server.url());
  options.stream_options = {
      .max_bytes = 1 << 20, .max_messages = 1'000, .max_age = 1h, .duplicate_window = 5min};
  Sender sender{options};
  sender.connect();
  sender.read_back();

  jsStreamInfo* info = nullptr;
  ASSERT_EQ(js_GetStreamInfo(&info, broker.context(), "SHOP", nullptr, nullptr), NATS_OK);
  EXPECT_EQ(info->Config->Storage, js_FileStorage);
  EXPECT_EQ(info->Config->Retention, js_LimitsPolicy);
  EXPECT_EQ(info->Config->Discard, js_DiscardNew);
  EXPECT_EQ(info->Config->MaxBytes, 1 << 20);
  EXPECT_EQ(info->Config->MaxMsgs, 1'000);
  EXPECT_EQ(info->Config->MaxAge, std::chrono::nanoseconds{1h}.count());
  EXPECT_EQ(info->Config->Duplicates, std::chrono::nanoseconds{5min}.count());
  jsStreamInfo_Destroy(info);
}

TEST_F(Publishing, ReadsALongStreamBackInParts) {
  const auto sender = connected(Fence::none);
  std::uint64_t last = 0;
  for (int i = 1; i <= 2'100; ++i) last = sender->send(i);
  sender->answers.wait_for(last);
  Sender fenced{options_for(server.url())};
  fenced.connect();

  std::vector<std::uint64_t> stops;
  std::size_t found = 0;
  while (stops.empty() || stops.back() < 2'100) {
    const Answer part = fenced.read_back(stops.empty() ? 1 : stops.back() + 1);
    ASSERT_EQ(part.kind, Kind::read_back);
    stops.push_back(part.last_sequence);
    found += part.found.size();
  }

  EXPECT_GE(stops.size(), 2U);
  EXPECT_EQ(found, 2'100U);
}

}  // namespace
}  // namespace stela::publisher_test
