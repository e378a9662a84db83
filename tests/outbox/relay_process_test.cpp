// Relays in processes of their own: killed, paused, joining, leaving, and resized under load.
#include "outbox/evidence.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/print_enums.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace stela::relay_process_test {
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
  /// How many events may be appended: each tick of a relay allows a few more.
  std::atomic<std::int64_t> allowed{few};
  /// The process that is to stop itself: between two ticks, or inside a transaction.
  std::atomic<pid_t> stops_at_tick{0};
  std::atomic<pid_t> stops_inside{0};

  static constexpr std::int64_t few = 20;
};

/// Stops this process if it is the one, once.
void stop_if_told(std::atomic<pid_t>& who) {
  if (who != getpid()) return;
  who = 0;
  raise(SIGSTOP);
}

/// What befalls a relay while it writes to the database.
class Fate final : public test::FileWatcher {
 public:
  explicit Fate(Board& board) : board_{board} {}
  test::DieAtNthWrite death;

  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation == test::FileOperation::write) stop_if_told(board_.stops_inside);
    return death.before(call);
  }

 private:
  Board& board_;
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
        const bool goes_on = test::eventually(
            [this] { return board->appended < board->allowed || board->stop_appending; });
        if (!goes_on) throw std::runtime_error{"no relay ticks"};
      }
    }};
  }

  /// After it has published a few messages, `fatal_write` kills it: the n-th from then on.
  Process relay(const std::string& name, int fatal_write = 0) {
    return Process{[this, name, fatal_write] {
      Fate fate{*board};
      const test::FaultVfs vfs{fate};
      auto store = open_store(vfs.name());
      Outbox outbox{store};
      test::FileBroker broker{dir_.file("broker.db"), fence_};
      Relay relay{outbox, broker, quick(name)};
      std::stop_source stop;
      std::int64_t published = 0;
      relay.on_tick([&](const RelayTick& tick) {
        board->published += tick.published;
        board->allowed = board->appended + Board::few;
        const bool has_few = published >= Board::few;
        published += tick.published;
        if (!has_few && published >= Board::few) fate.death.arm(fatal_write);
        stop_if_told(board->stops_at_tick);
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
      relay.run_once();
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

  /// True if anybody's lease hasn't run out; asked without opening a store, which a writer that is
  /// paused would keep from opening.
  bool has_lease() const {
    const auto now = system_clock().now().time_since_epoch().count();
    return test::RawSqlite{dir_.file("shop.db")}.integer(
               "SELECT count(*) FROM outbox_partitions WHERE lease_until > " +
               std::to_string(now)) > 0;
  }

  /// Waits until so many more are published.
  void see_published(std::int64_t more) {
    const std::int64_t wanted = board->published + more;
    EXPECT_TRUE(test::eventually([&] { return board->published >= wanted; }));
  }

  const test::Shared<Board> board;

 private:
  Store open_store(const std::string& vfs = {}) {
    return sqlite::open(
        dir_.file("shop.db"),
        {.durability = sqlite::Durability::relaxed, .busy_timeout = 10s, .vfs = vfs});
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

TEST_P(RelayProcesses, LoseAndDuplicateNothingWhenTheyAreKilled) {
  Site site{GetParam(), 2};
  Process appending = site.append();
  constexpr int kills = 8;
  for (int i = 0; i < kills; ++i) {
    Process relay = site.relay(name_of(i), 1 + 5 * i);
    EXPECT_EQ(relay.wait(), 128 + SIGKILL);
  }
  site.board->stop_appending = true;
  EXPECT_EQ(appending.wait(), 0);

  const auto evidence = site.settle();

  EXPECT_THAT(evidence.flaws, IsEmpty());
  EXPECT_GE(evidence.events, kills * Board::few);
  EXPECT_LE(evidence.duplicates, kills * 60) << "no more than was in flight";
}

bool owns_any(const OutboxStatus& status, std::string_view worker) {
  return std::any_of(status.partitions.begin(), status.partitions.end(),
                     [&](const PartitionStatus& one) { return one.owner == worker; });
}

TEST_P(RelayProcesses, KeepTheStreamCorrectWhenPausedBeyondTheirLease) {
  Site site{GetParam(), 2};
  Process appending = site.append();
  Process first = site.relay("a");
  site.see_published(50);
  Process second = site.relay("b");
  for (const bool is_first : {true, false, true}) {
    // The other one takes over.
    Process& paused = is_first ? first : second;
    site.board->stops_at_tick = paused.id();
    paused.wait_until_stopped();
    EXPECT_TRUE(test::eventually([&] { return !owns_any(site.status(), is_first ? "a" : "b"); }));
    site.see_published(20);
    paused.resume();
    site.see_published(20);
  }
  for (const bool is_first : {true, false}) {
    // Nobody can write meanwhile.
    Process& paused = is_first ? first : second;
    site.board->stops_inside = paused.id();
    paused.wait_until_stopped();
    EXPECT_TRUE(test::eventually([&] { return !site.has_lease(); }));
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
  EXPECT_LE(evidence.duplicates, 5 * 60);
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

TEST(RelayMembership, SharesSixteenPartitionsAmongAChangingNumberOfWorkers) {
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
}  // namespace stela::relay_process_test
