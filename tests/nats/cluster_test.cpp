// A relay and its consumers on a cluster of three servers, which die, hang and lead in turns.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/nats_cluster.hpp"

#include <stela/nats/inbox.hpp>
#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace stela::cluster_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::Ledger;
using test::NatsCluster;
using test::OrderShipped;
using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;

constexpr int partitions = 16;
constexpr int parcels = 64;

std::string stream_of(int index) {
  return "SHOP_" + PartitionId::at(index, partitions).label();
}

class OnACluster : public ::testing::Test {
 protected:
  OnACluster(int replicas, std::chrono::milliseconds publish_timeout)
      : shop{dir.file("shop.db"),
             cluster.url(),
             {.partition_count = partitions},
             {.stream_options = {.replicas = replicas},
              .connect_timeout = 500ms,
              .publish_timeout = publish_timeout},
             {.publish_timeout = publish_timeout,
              .retry_backoff = 20ms,
              .retry_backoff_max = 200ms}} {}

  void append(int parcel) {
    UnitOfWork unit{shop.store};
    unit.append(StreamId::of("parcel", std::to_string(parcel)), ExpectedVersion::any(),
                OrderShipped{"dhl"});
    unit.commit();
    ++appended;
  }
  /// One more event for each parcel, again and again, unless thousands wait for their effect.
  std::jthread appender() {
    return std::jthread{[this](const std::stop_token& stop) {
      while (!test::is_stopped_within(1ms * parcels, stop)) {
        if (appended - handled() > 2'000) continue;
        for (int parcel = 0; parcel < parcels; ++parcel) append(parcel);
      }
    }};
  }
  std::jthread relay() {
    return std::jthread{[this](const std::stop_token& stop) { shop.relay.run(stop); }};
  }
  /// Of all streams, with one inbox.
  std::vector<std::jthread> consumers() {
    std::vector<std::jthread> threads;
    for (int i = 0; i < partitions; ++i) {
      threads.emplace_back([this, i](const std::stop_token& stop) {
        nats::Consumer consumer{ledger.store,
                                {.url = cluster.url(),
                                 .connect_timeout = 500ms,
                                 .name = "effects",
                                 .stream = stream_of(i),
                                 .idle_wait = 200ms,
                                 .retry_backoff = 20ms,
                                 .retry_backoff_max = 200ms}};
        consumer.on<OrderShipped>(Ledger::note<OrderShipped>);
        consumer.run(stop);
      });
    }
    return threads;
  }
  std::int64_t handled() {
    return test::RawSqlite{sqlite::path(ledger.store)}.integer("SELECT count(*) FROM ledger");
  }
  bool has_effect_of(int parcel) {
    return test::RawSqlite{sqlite::path(ledger.store)}.integer(
               "SELECT count(*) FROM ledger WHERE line LIKE 'parcel-" + std::to_string(parcel) +
               "@%'") > 0;
  }
  /// Waits until everything that has been appended by now has had its effect.
  bool catches_up() {
    const std::int64_t wanted = appended;
    return test::eventually([&] { return handled() >= wanted; });
  }
  std::vector<PartitionStatus> status() { return OutboxOperations{shop.store}.status().partitions; }

  /// Each event stands in the streams once, and those of a stream in their order.
  void expect_each_event_once_at_the_broker() {
    JetStream broker{cluster.url()};
    std::set<std::string> ids;
    for (int i = 0; i < partitions; ++i) {
      std::int64_t last = 0;
      for (const test::RawMessage& message : broker.drain(stream_of(i))) {
        const std::int64_t sequence = std::stoll(message.headers.at("Stela-Sequence"));
        EXPECT_GT(sequence, last) << stream_of(i);
        EXPECT_TRUE(ids.insert(message.headers.at("ce-id")).second) << sequence << " is a copy";
        last = sequence;
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(ids.size()), appended);
  }
  /// Each event had its effect once, and those of a parcel in their order.
  void expect_each_effect_once() {
    std::map<std::string, int> versions;
    for (const std::string& line : ledger.lines()) {
      const std::string parcel = line.substr(0, line.find('@'));
      EXPECT_EQ(line, parcel + '@' + std::to_string(++versions[parcel]) + " order.shipped");
    }
    EXPECT_EQ(handled(), appended);
    nats::InboxOperations inbox{ledger.store};
    EXPECT_THAT(inbox.gaps(), IsEmpty());
    EXPECT_THAT(inbox.parked(), IsEmpty());
  }

  test::TempDir dir;
  NatsCluster cluster;
  test::Shop shop;
  Ledger ledger{dir.file("effects.db")};
  std::atomic<std::int64_t> appended = 0;
};

struct ReplicatedStreams : OnACluster {
  ReplicatedStreams() : OnACluster{3, 2'000ms} {}

  static constexpr int busy_parcel = 0;

  /// Of some streams. The server that led the busy one.
  std::string let_leaders_step_down() {
    JetStream broker{cluster.url()};
    const int busy =
        PartitionId::of("parcel-" + std::to_string(busy_parcel), partitions).number - 1;
    std::string leader;
    EXPECT_TRUE(
        test::eventually([&] { return !(leader = broker.leader_of(stream_of(busy))).empty(); }));
    for (const int index : {busy, 3, 7, 11}) {
      EXPECT_TRUE(test::eventually([&] { return broker.step_down(stream_of(index)); }));
    }
    return leader;
  }
  bool is_in_trouble() {
    const auto all = status();
    return std::any_of(all.begin(), all.end(), [](const auto& each) { return each.attempts > 0; });
  }
};

TEST_F(ReplicatedStreams, HoldEachEventOnceWhileTheirLeadersDieHangAndStepDown) {
  {
    const auto consuming = consumers();
    const auto relaying = relay();
    {
      const auto appending = appender();
      ASSERT_TRUE(test::eventually([this] { return has_effect_of(busy_parcel); }));
      const std::string victim = let_leaders_step_down();
      cluster.server(victim).kill();
      const std::string hanging = victim == "n0" ? "n1" : "n0";
      cluster.server(hanging).pause();
      // Of three servers one is left, which may acknowledge nothing.
      EXPECT_TRUE(test::eventually([this] { return is_in_trouble(); }));
      cluster.server(hanging).resume();
      cluster.server(victim).start_again();
      EXPECT_TRUE(catches_up());
    }
    EXPECT_TRUE(catches_up());
  }
  for (const PartitionStatus& each : status()) {
    EXPECT_FALSE(each.stopped) << each.id.label() << ": " << each.stopped_detail;
  }
  expect_each_event_once_at_the_broker();
  expect_each_effect_once();
}

struct SingleStreams : OnACluster {
  SingleStreams() : OnACluster{1, publish_timeout} {}

  /// What waits for an answer of a dead server's waits as long; a round of appends takes a
  /// fraction.
  static constexpr auto publish_timeout = 10'000ms;

  /// Every fourth stream stands on the server n2 alone, the others on n0 and n1.
  static bool is_on_n2(int index) { return index % 4 == 2; }
  void make_streams() {
    JetStream broker{cluster.url()};
    for (int i = 0; i < partitions; ++i) {
      const std::string name = is_on_n2(i) ? "n2" : NatsCluster::name_of(i % 2);
      const char* tag = name.c_str();
      jsPlacement placement{.Cluster = "stela", .Tags = &tag, .TagsLen = 1};
      broker.make_stream(stream_of(i), "shop_" + PartitionId::at(i, partitions).label() + ".>",
                         [&](jsStreamConfig& config) {
                           config.Placement = &placement;
                           config.Replicas = 1;
                         });
    }
  }
  /// Nothing waits in the partitions of n0 and n1.
  bool living_ones_are_drained() {
    const auto all = status();
    for (int i = 0; i < partitions; ++i) {
      const PartitionStatus& each = all.at(static_cast<std::size_t>(i));
      if (!is_on_n2(i) && each.pending + each.in_flight + each.retrying > 0) return false;
    }
    return true;
  }
  std::vector<std::int64_t> waiting_on_n2() {
    std::vector<std::int64_t> counts;
    const auto all = status();
    for (int i = 0; i < partitions; ++i) {
      const PartitionStatus& each = all.at(static_cast<std::size_t>(i));
      if (is_on_n2(i)) counts.push_back(each.pending + each.in_flight + each.retrying);
    }
    return counts;
  }
};

TEST_F(SingleStreams, OfADeadServerBlockNoOthers) {
  make_streams();
  {
    const auto relaying = relay();
    for (int i = 0; i < parcels; ++i) append(i);
    ASSERT_TRUE(test::eventually(
        [this] { return OutboxOperations{shop.store}.status().published == parcels; }));

    cluster.server(2).kill();
    for (int round = 0; round < 5; ++round) {
      const auto begun = std::chrono::steady_clock::now();
      for (int i = 0; i < parcels; ++i) append(i);
      EXPECT_TRUE(test::eventually([this] { return living_ones_are_drained(); }));
      EXPECT_LT(std::chrono::steady_clock::now() - begun, publish_timeout)
          << "nobody waited for an answer of the dead server's";
    }
    EXPECT_THAT(waiting_on_n2(), Each(Gt(0)));
    cluster.server(2).start_again();
    EXPECT_TRUE(test::eventually(
        [this] { return OutboxOperations{shop.store}.status().published == appended; }));
  }
  const auto consuming = consumers();
  EXPECT_TRUE(catches_up());
  expect_each_event_once_at_the_broker();
  expect_each_effect_once();
}

}  // namespace
}  // namespace stela::cluster_test
