// The number of partitions changes under a relay and its consumers.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

namespace stela::resize_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderShipped;
using ::testing::ElementsAre;

constexpr int parcels = 40;

/// Runs on a thread of its own until it goes.
template <class Run>
std::jthread live(Run run) {
  return std::jthread{[run = std::move(run)](std::stop_token stop) { run(stop); }};
}

class Resizing : public ::testing::Test {
 protected:
  /// One more event for each parcel.
  void append() {
    for (int parcel = 0; parcel < parcels; ++parcel) {
      UnitOfWork unit{shop.store};
      unit.append(StreamId::of("parcel", std::to_string(parcel)), ExpectedVersion::any(),
                  OrderShipped{"dhl"});
      unit.commit();
    }
    appended += parcels;
  }
  std::int64_t handled() {
    return test::RawSqlite{sqlite::path(ledger.store)}.integer("SELECT count(*) FROM ledger");
  }
  /// A consumer of every JetStream stream that there may be, all of one name and with one inbox.
  std::vector<std::jthread> consumers() {
    std::vector<std::jthread> threads;
    for (PartitionId partition; partition.number <= 16; ++partition.number) {
      const std::string stream = partition.number == 0 ? "SHOP" : "SHOP_" + partition.label();
      threads.push_back(live([this, stream](std::stop_token stop) {
        nats::Consumer consumer{ledger.store,
                                {.url = server.url(),
                                 .name = "effects",
                                 .stream = stream,
                                 .retry_backoff = 20ms,
                                 .retry_backoff_max = 100ms}};
        consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
        consumer.run(stop);
      }));
    }
    return threads;
  }

  test::TempDir dir;
  test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  Ledger ledger{dir.file("effects.db")};
  std::int64_t appended = 0;
};

TEST_F(Resizing, FromOneToSixteenToFourLosesAndRepeatsNothing) {
  OutboxOperations operations{shop.store};
  {
    const auto relay = live([this](std::stop_token stop) { shop.relay.run(stop); });
    const auto consuming = consumers();
    for (const int count : {16, 4, 0}) {
      append();
      EXPECT_TRUE(test::eventually([&] { return handled() > appended - parcels; }));
      // What is under way and what comes now is on both sides of the change.
      append();
      if (count > 0) operations.resize(count);
      append();
    }
    EXPECT_TRUE(test::eventually([&] { return handled() >= appended; }, 60s));
  }

  std::map<std::string, int> versions;
  for (const std::string& line : ledger.lines()) {
    const std::string stream = line.substr(0, line.find('@'));
    EXPECT_EQ(line, stream + '@' + std::to_string(++versions[stream]) + " order.shipped");
  }
  EXPECT_EQ(handled(), appended);
  test::RawSqlite inbox{sqlite::path(ledger.store)};
  EXPECT_EQ(inbox.integer("SELECT count(*) FROM inbox_gaps"), 0);
  EXPECT_EQ(inbox.integer("SELECT count(*) FROM inbox_parked"), 0);
  test::JetStream broker{server.url()};
  std::int64_t stored = 0;
  const auto streams = broker.streams();
  for (const std::string& stream : streams) stored += broker.count(stream);
  EXPECT_EQ(stored, appended) << "each event is in one stream, once";
  EXPECT_GE(streams.size(), 10U);
  EXPECT_EQ(operations.status().generations.size(), 3U);
}

/// "2 4": the header of each message of the stream.
std::vector<std::string> generations_in(test::JetStream& broker, const std::string& stream) {
  std::vector<std::string> found;
  for (const auto& message : broker.messages(stream)) {
    const auto header = message.headers.find("Stela-Generation");
    found.push_back(header == message.headers.end() ? "none" : header->second);
  }
  return found;
}

TEST_F(Resizing, IsNamedInEachMessageFromThenOn) {
  OutboxOperations operations{shop.store};
  shop.send_parcel();
  shop.send_parcel();
  operations.resize(4);
  shop.send_parcel();
  operations.resize(1);
  shop.send_parcel();
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().pending == 0;
  }));
  operations.republish({.from = GlobalSequence{1}, .to = GlobalSequence{1}});
  ASSERT_TRUE(test::eventually([&] {
    shop.publish();
    return operations.status().redeliveries == 0;
  }));

  test::JetStream broker{server.url()};
  EXPECT_THAT(generations_in(broker, "SHOP"), ElementsAre("none", "none", "3 4", "3 4"));
  const auto partition = PartitionId::of("parcel-1", 4);
  EXPECT_THAT(generations_in(broker, "SHOP_" + partition.label()), ElementsAre("2 3"));
}

}  // namespace
}  // namespace stela::resize_test
