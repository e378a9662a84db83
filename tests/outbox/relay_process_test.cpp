// Relays in processes of their own: killed, paused, joining, leaving, and resized under load.
#include "outbox/evidence.hpp"
#include "support/histories.hpp"
#include "support/print_enums.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace stela {
namespace {

using namespace std::chrono_literals;
using test::Process;
using ::testing::IsEmpty;

/// What all processes share: each knows what to do from here.
struct Board {
  std::atomic<bool> stop_appending{false};
  std::atomic<bool> stop_relaying{false};
  std::atomic<std::int64_t> appended{0};
  std::atomic<std::int64_t> published{0};
};

/// "w3-0": the first worker of the third round.
std::string name_of(int round, std::size_t worker = 0) {
  std::string name{"w"};
  name += std::to_string(round);
  name += '-';
  name += std::to_string(worker);
  return name;
}

/// A database and a broker in a folder, and processes that work on them. The parent opens neither
/// as long as it may fork.
class Site {
 public:
  Site(Fence fence, int partitions) : fence_{fence} {
    // A process, too: what it opened must not be inherited.
    Process maker{[&] {
      auto store = open_store();
      const Outbox outbox{store, {.partition_count = partitions, .fence = fence_}};
      const test::FileBroker broker{dir_.file("broker.db"), fence_};
    }};
    EXPECT_EQ(maker.wait(), 0);
  }

  Process append() {
    return Process{[this] {
      auto store = open_store();
      const Outbox outbox{store};
      for (int i = 0; !board->stop_appending; ++i) {
        std::string payload = R"({"number":)" + std::to_string(i);
        payload += '}';
        test::append(store, "order-" + std::to_string(i % 40),
                     {NewEvent{"placed", 1, true, std::move(payload)}});
        ++board->appended;
        std::this_thread::sleep_for(300us);
      }
    }};
  }

  Process relay(const std::string& name) {
    return Process{[this, name] {
      auto store = open_store();
      Outbox outbox{store};
      test::FileBroker broker{dir_.file("broker.db"), fence_};
      Relay relay{outbox, broker, quick(name)};
      std::stop_source stop;
      relay.on_tick([&](const RelayTick& tick) {
        board->published += tick.published;
        if (board->stop_relaying) stop.request_stop();
      });
      relay.run(stop.get_token());
    }};
  }

  /// In a process of its own: what an operator does.
  void operate(const std::function<void(OutboxOperations&)>& work) {
    Process operator_process{[&] {
      auto store = open_store();
      const Outbox outbox{store};
      OutboxOperations operations{store, {.who = "ann"}};
      work(operations);
    }};
    EXPECT_EQ(operator_process.wait(), 0);
  }

  /// Stops appending, lets one relay drain everything, and compares.
  test::Evidence settle() {
    board->stop_relaying = true;
    auto store = open_store();
    Outbox outbox{store};
    test::FileBroker broker{dir_.file("broker.db"), fence_};
    Relay relay{outbox, broker, quick("last")};
    const bool drained = test::eventually([&] {
      relay.tick();
      return OutboxOperations{store}.status().pending == 0;
    });
    EXPECT_TRUE(drained);
    return test::compare(store, broker, fence_);
  }

  OutboxStatus status() {
    // Its own connection each time: nothing is open while we fork.
    auto store = open_store();
    return OutboxOperations{store}.status();
  }

  /// Waits until so many more are published.
  void see_published(std::int64_t more) {
    const std::int64_t wanted = board->published + more;
    EXPECT_TRUE(test::eventually([&] { return board->published >= wanted; }));
  }

  const test::Shared<Board> board;

 private:
  sqlite::Store open_store() {
    return sqlite::open(dir_.file("shop.db"),
                        {.durability = sqlite::Durability::relaxed, .busy_timeout = 10s});
  }
  static RelayOptions quick(const std::string& name) {
    return {.worker = name,
            .lease_ttl = 700ms,
            .lease_renew = 200ms,
            .heartbeat_ttl = 700ms,
            .batch_size = 20,
            .window = 60,
            .idle_backoff = 50ms,
            .publish_timeout = 500ms,
            .retry_backoff = 50ms,
            .retry_backoff_max = 200ms};
  }

  const Fence fence_;
  test::TempDir dir_ = test::TempDir::in_memory();
};

class RelayProcesses : public ::testing::TestWithParam<Fence> {};

INSTANTIATE_TEST_SUITE_P(EveryFence, RelayProcesses,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(RelayProcesses, AreKilledAndNothingIsLostOrTwiceInTheStream) {
  Site site{GetParam(), 2};
  Process appending = site.append();
  constexpr int kills = 8;
  for (int i = 0; i < kills; ++i) {
    Process relay = site.relay(name_of(i));
    site.see_published(20);
    std::this_thread::sleep_for(std::chrono::milliseconds{i * 5});
    relay.kill();
  }
  site.board->stop_appending = true;
  EXPECT_EQ(appending.wait(), 0);

  const auto evidence = site.settle();

  EXPECT_THAT(evidence.flaws, IsEmpty());
  EXPECT_GE(evidence.events, kills * 20);
  EXPECT_LE(evidence.duplicates, kills * 60) << "no more than was in flight";
}

TEST_P(RelayProcesses, ArePausedBeyondTheirLease) {
  Site site{GetParam(), 2};
  Process appending = site.append();
  Process first = site.relay("a");
  site.see_published(50);
  Process second = site.relay("b");
  for (int i = 0; i < 3; ++i) {
    Process& paused = i % 2 == 0 ? first : second;
    // Wherever it is, in a transaction of the store's or the broker's perhaps.
    paused.stop();
    std::this_thread::sleep_for(1200ms);
    paused.resume();
    site.see_published(20);
  }
  site.board->stop_appending = true;
  EXPECT_EQ(appending.wait(), 0);
  site.board->stop_relaying = true;
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);

  const auto evidence = site.settle();

  EXPECT_THAT(evidence.flaws, IsEmpty());
  EXPECT_LE(evidence.duplicates, 3 * 60);
}

/// Each live worker's share of the partitions, or empty if somebody owns none or too many.
bool is_fair(const OutboxStatus& status, int workers) {
  const int partitions = status.partition_count;
  int alive = 0;
  int owned = 0;
  for (const WorkerStatus& worker : status.workers) {
    if (!worker.is_alive) continue;
    ++alive;
    owned += worker.partitions;
    if (worker.partitions > (partitions + workers - 1) / workers) return false;
    if (worker.partitions < partitions / workers) return false;
  }
  return alive == workers && owned == partitions;
}

TEST(RelayMembership, SharesSixteenPartitionsAmongOneEightThreeAndSeventeen) {
  Site site{Fence::stream, 16};
  Process appending = site.append();
  std::vector<std::unique_ptr<Process>> workers;
  for (const int wanted : {1, 8, 3, 17}) {
    // Those that leave are killed: nobody hands anything over.
    while (static_cast<int>(workers.size()) > wanted) {
      workers.back()->kill();
      workers.pop_back();
    }
    while (static_cast<int>(workers.size()) < wanted) {
      workers.push_back(std::make_unique<Process>(site.relay(name_of(wanted, workers.size()))));
    }
    EXPECT_TRUE(test::eventually([&] { return is_fair(site.status(), wanted); }, 60s))
        << wanted << " workers";
    site.see_published(20);
  }
  site.board->stop_appending = true;
  EXPECT_EQ(appending.wait(), 0);
  site.board->stop_relaying = true;
  for (const auto& worker : workers) EXPECT_EQ(worker->wait(), 0);

  EXPECT_THAT(site.settle().flaws, IsEmpty());
}

TEST(RelayResize, GoesUpAndDownUnderLoad) {
  Site site{Fence::stream, 1};
  Process appending = site.append();
  Process first = site.relay("a");
  Process second = site.relay("b");
  for (const int count : {4, 16, 3, 1, 2}) {
    site.see_published(30);
    site.operate([&](OutboxOperations& operations) { operations.resize(count); });
    if (count == 3) second.kill();
  }
  site.see_published(30);
  site.board->stop_appending = true;
  EXPECT_EQ(appending.wait(), 0);
  site.board->stop_relaying = true;
  EXPECT_EQ(first.wait(), 0);

  const auto evidence = site.settle();

  EXPECT_THAT(evidence.flaws, IsEmpty());
  EXPECT_EQ(site.status().generations.size(), 6u);
}

}  // namespace
}  // namespace stela
