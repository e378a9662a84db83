// Relays at the end of a slow line, and of one that is cut.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/tcp_proxy.hpp"
#include "support/termination.hpp"

#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

namespace stela::slow_line_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::JetStream;
using test::NatsServer;

constexpr auto lease_ttl = 3'000ms;
constexpr auto publish_timeout = 2'500ms;
constexpr int line = 1'000'000;

RelayOptions short_leases() {
  return {.lease_ttl = lease_ttl,
          .lease_renew = 1'000ms,
          .heartbeat_ttl = lease_ttl,
          .idle_backoff = 200ms,
          .publish_timeout = publish_timeout,
          .retry_backoff = 50ms,
          .retry_backoff_max = 200ms};
}

std::unique_ptr<test::Shop> open_shop(const std::string& database, const std::string& url,
                                      int partitions) {
  return std::make_unique<test::Shop>(
      database, url, OutboxOptions{.partition_count = partitions},
      nats::PublisherOptions{.connect_timeout = 500ms, .publish_timeout = publish_timeout},
      short_leases());
}

/// How often each event stands in the streams, by its id.
std::map<std::string, int> copies_at(const NatsServer& server) {
  JetStream broker{server.url()};
  std::map<std::string, int> copies;
  for (const std::string& stream : broker.streams()) {
    for (const auto& message : broker.drain(stream)) ++copies[message.headers.at("ce-id")];
  }
  return copies;
}

void expect_each_once(const NatsServer& server, std::size_t events) {
  const auto copies = copies_at(server);
  EXPECT_EQ(copies.size(), events);
  for (const auto& [id, count] : copies) EXPECT_EQ(count, 1) << id;
}

TEST(SlowLine, LetsALargePayloadRelayKeepItsLeasesAndEndInTime) {
  constexpr int partitions = 2;
  constexpr int orders = 20;
  const test::TempDir dir;
  const NatsServer server;
  const std::string database = dir.file("shop.db");
  test::Shared<std::atomic<int>> port;
  test::Process relay{[&] {
    const test::Termination termination;
    test::eventually([&] { return *port > 0; });
    open_shop(database, "nats://127.0.0.1:" + std::to_string(*port), partitions)
        ->relay.run(termination.token());
  }};
  test::TcpProxy proxy{server.port()};
  proxy.limit(line);
  const auto shop = open_shop(database, server.url(), partitions);
  for (int i = 0; i < orders; ++i) {
    shop->place(std::to_string(i), 100, std::string(1'000'000, 'x'));
  }
  OutboxOperations operations{shop->store};
  *port = proxy.port();
  const auto has_all = [&] {
    const auto all = operations.status().partitions;
    return std::all_of(all.begin(), all.end(), [](const auto& each) { return each.epoch == 1; });
  };
  ASSERT_TRUE(test::eventually(has_all));

  // A message is a second on its way.
  const auto until = steady_clock::now() + 2 * lease_ttl;
  bool are_held = true;
  test::eventually([&] {
    for (const PartitionStatus& each : operations.status().partitions) {
      are_held = are_held && each.epoch == 1 && each.lease_left > 0ms;
    }
    return steady_clock::now() > until;
  });
  EXPECT_TRUE(are_held);
  const auto published = operations.status().published;
  EXPECT_GE(published, 2);
  EXPECT_LT(published, orders);

  const auto told = steady_clock::now();
  relay.signal(SIGTERM);
  EXPECT_EQ(relay.wait(), 0);
  EXPECT_LT(steady_clock::now() - told, publish_timeout + 1s);
  for (const PartitionStatus& each : operations.status().partitions) EXPECT_EQ(each.owner, "");

  // On a line that is as fast as any, somebody else goes on.
  EXPECT_TRUE(test::eventually([&] {
    shop->publish();
    return operations.status().published == orders;
  }));
  expect_each_once(server, orders);
}

class CutOffWorker : public ::testing::Test {
 protected:
  static constexpr int partitions = 16;

  void place(int count) {
    for (int i = 0; i < count; ++i) {
      near->place(std::to_string(placed++), 100, std::string(50'000, 'x'));
    }
  }
  static std::jthread run(test::Shop& shop) {
    return std::jthread{[&shop](const std::stop_token& stop) { shop.relay.run(stop); }};
  }
  /// How many partitions each worker has that is alive, the least first.
  std::vector<int> shares() {
    std::vector<int> shares;
    for (const WorkerStatus& each : operations.status().workers) {
      if (each.is_alive) shares.push_back(each.partitions);
    }
    std::sort(shares.begin(), shares.end());
    return shares;
  }
  int cut_off() {
    const auto workers = operations.status().workers;
    return static_cast<int>(std::count_if(workers.begin(), workers.end(), [](const auto& each) {
      return each.is_alive && each.is_cut_off;
    }));
  }
  bool reaches(const std::vector<int>& wanted) {
    return test::eventually([&] { return shares() == wanted; });
  }
  bool publishes_all() {
    return test::eventually([this] { return operations.status().published == placed; });
  }

  const test::TempDir dir;
  const NatsServer server;
  test::TcpProxy proxy{server.port()};
  const std::unique_ptr<test::Shop> near = open_shop(dir.file("shop.db"), server.url(), partitions);
  const std::unique_ptr<test::Shop> far = open_shop(dir.file("shop.db"), proxy.url(), partitions);
  OutboxOperations operations{near->store};
  int placed = 0;
};

TEST_F(CutOffWorker, OnASlowLineLosesItsPartitionsAndRejoins) {
  {
    const auto one = run(*near);
    const auto other = run(*far);
    proxy.limit(line);
    ASSERT_TRUE(reaches({8, 8}));
    place(64);
    EXPECT_TRUE(publishes_all());
    EXPECT_EQ(cut_off(), 0) << "a slow line isn't a cut one";

    // Some of it is on the line.
    place(64);
    proxy.refuse(true);
    proxy.cut();
    place(64);
    EXPECT_TRUE(publishes_all());
    EXPECT_TRUE(reaches({0, 16}));
    EXPECT_EQ(cut_off(), 1);

    proxy.refuse(false);
    EXPECT_TRUE(reaches({8, 8}));
    EXPECT_EQ(cut_off(), 0);
    place(64);
    EXPECT_TRUE(publishes_all());
  }
  expect_each_once(server, static_cast<std::size_t>(placed));
}

}  // namespace
}  // namespace stela::slow_line_test
