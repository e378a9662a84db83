// What stands in JetStream, read from one end to the other.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/print_enums.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::stream_reader_test {
namespace {

using test::JetStream;
using test::NatsServer;
using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

nats::PublisherOptions options_of(const NatsServer& server, Fence fence) {
  return {.url = server.url(),
          .prefix = "shop",
          .stream = "SHOP",
          .fence = fence,
          .publish_timeout = std::chrono::milliseconds{2'000}};
}

struct Read {
  /// "1@1": the event's sequence, and the broker's.
  std::vector<std::string> found = {};
  bool dropped = false;
};

Read read(nats::StreamReader& reader, PartitionId partition) {
  Read result;
  result.dropped = reader.read(partition, [&](const FoundMessage& message) {
    result.found.push_back((message.is_ours ? std::to_string(message.sequence.value()) : "?") +
                           '@' + std::to_string(message.broker_sequence));
  });
  return result;
}

class StreamReading : public ::testing::TestWithParam<Fence> {
 protected:
  NatsServer server_;
  test::TempDir dir_ = test::TempDir::in_memory();
};

INSTANTIATE_TEST_SUITE_P(EveryFence, StreamReading,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(StreamReading, FindsMessagesOfRelaysAndOthers) {
  Shop shop{dir_.file("shop.db"), server_.url(), {.fence = GetParam()}};
  for (int i = 1; i <= 5; ++i) shop.place(std::to_string(i));
  ASSERT_EQ(shop.publish().published, 5);
  JetStream raw{server_.url()};
  raw.publish(GetParam() == Fence::subject ? "shop.all" : "shop.x", "hello");
  raw.erase("SHOP", 3);
  nats::StreamReader reader{options_of(server_, GetParam())};

  const Read whole = read(reader, PartitionId{});
  EXPECT_THAT(whole.found, ElementsAre("1@1", "2@2", "4@4", "5@5", "?@6"));
  EXPECT_FALSE(whole.dropped);

  raw.erase("SHOP", 6);
  raw.erase("SHOP", 5);
  EXPECT_THAT(read(reader, PartitionId{}).found, ElementsAre("1@1", "2@2", "4@4"))
      << "the last ones are gone, and not the others";

  raw.erase("SHOP", 1);
  EXPECT_FALSE(read(reader, PartitionId{}).dropped) << "somebody has deleted it";
  raw.update_stream("SHOP", [](auto& config) { config.MaxAge = 3'600'000'000'000; });
  const Read rest = read(reader, PartitionId{});
  EXPECT_THAT(rest.found, ElementsAre("2@2", "4@4"));
  EXPECT_TRUE(rest.dropped);

  raw.purge("SHOP");
  const Read none = read(reader, PartitionId{});
  EXPECT_THAT(none.found, IsEmpty());
  EXPECT_TRUE(none.dropped);

  raw.delete_stream("SHOP");
  EXPECT_THAT(test::message_of<BrokerFailed>([&] { read(reader, PartitionId{}); }),
              HasSubstr("'SHOP'"));
}

TEST_P(StreamReading, TakesAMissingStreamForAnEmptyOneWhereRelaysWouldMakeIt) {
  nats::PublisherOptions options = options_of(server_, GetParam());
  options.ensure_stream = true;
  nats::StreamReader reader{options};

  const Read none = read(reader, PartitionId{});

  EXPECT_THAT(none.found, IsEmpty());
  EXPECT_FALSE(none.dropped);
  EXPECT_THAT(JetStream{server_.url()}.streams(), IsEmpty()) << "whoever reads makes nothing";
}

TEST_P(StreamReading, ReadsEachPartitionByItselfAndMoreThanOneRequestGives) {
  Shop shop{dir_.file("shop.db"), server_.url(), {.partition_count = 2, .fence = GetParam()}};
  constexpr int orders = 2'500;
  for (int i = 0; i < orders; ++i) shop.place(std::to_string(i));
  while (shop.publish().published > 0) {
  }
  nats::StreamReader reader{options_of(server_, GetParam())};
  std::size_t found = 0;
  if (GetParam() == Fence::none) {
    found = read(reader, PartitionId{}).found.size();
  } else {
    for (int i = 0; i < 2; ++i) found += read(reader, PartitionId::at(i, 2)).found.size();
  }
  EXPECT_EQ(found, orders);
}

TEST(StreamReader, ReportsAnAddressWithoutAListener) {
  EXPECT_THAT(test::message_of<BrokerFailed>(
                  [] { nats::StreamReader{nats::PublisherOptions{.url = "nats://127.0.0.1:1"}}; }),
              HasSubstr("nats://127.0.0.1:1"));
}

}  // namespace
}  // namespace stela::stream_reader_test
