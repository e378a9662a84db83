// A relay on a disk that fails, beside a lock that is held, over rows that are damaged, under a
// clock that is set.
#include "outbox/evidence.hpp"
#include "outbox/shop.hpp"
#include "support/fault_vfs.hpp"
#include "support/print_enums.hpp"
#include "support/process.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

namespace stela::damage_test {
namespace {

using namespace std::chrono_literals;
using test::FileOperation;
using test::Shop;
using test::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PartitionId all{0};

// --- the disk

/// Simulated time passes twenty times as fast as real time.
class PassingTime {
 public:
  explicit PassingTime(testing::ManualClock& clock)
      : thread_{[&clock](const std::stop_token& stop) {
          while (!test::is_stopped_within(1ms, stop)) clock.advance(20ms);
        }} {}

 private:
  std::jthread thread_;
};

struct FailingDisk : ::testing::TestWithParam<Fence> {
  /// Fails the n-th call while a relay works, then mends the disk, opens the database again and
  /// relays on.
  void survive(const test::FailNth::Plan& plan) {
    test::FailNth disk;
    const test::FaultVfs vfs{disk};
    Shop shop{{.fence = GetParam()}, {}, vfs.name()};
    for (int i = 0; i < 12; ++i) shop.append("order-" + std::to_string(i % 5));
    relay_until(shop, disk, plan);
    mend(shop);
  }

  void relay_until(Shop& shop, test::FailNth& disk, const test::FailNth::Plan& plan) {
    const PassingTime time{shop.clock};
    Relay relay{shop.outbox,
                shop.broker,
                {.lease_ttl = 2s, .lease_renew = 500ms, .window = 4, .publish_timeout = 1s}};
    disk.arm(plan);
    std::jthread running{[&](const std::stop_token& stop) {
      try {
        relay.run(stop);
      } catch (const Error& e) {
        EXPECT_STRNE(e.what(), "");
      }
    }};
    EXPECT_TRUE(test::eventually([&] { return disk.has_fired(); }));
    const Timestamp mended = shop.clock.now() + 100ms;
    EXPECT_TRUE(test::eventually([&] { return shop.clock.now() >= mended; }));
    disk.disarm();
    // Bounded by the lease, though a commit may be in doubt and the store closed for good.
  }

  /// As an operator would: a new process, once the disk is well.
  static void mend(Shop& shop) {
    shop.lose_relay();
    auto store = sqlite::open(shop.dir.file("shop.db"), {.clock = &shop.clock});
    Outbox outbox{store};
    test::FileBroker broker{shop.dir.file("broker.db"), GetParam()};
    Relay relay{outbox, broker, {.worker = "mender"}};
    for (int i = 0; i < 4; ++i) {
      shop.clock.advance(2s);
      relay.run_once();
    }
    const auto evidence = test::compare(store, broker, GetParam());
    EXPECT_THAT(evidence.flaws, IsEmpty());
    EXPECT_EQ(evidence.events, 12);
    EXPECT_LE(evidence.duplicates, 12);
  }
};

INSTANTIATE_TEST_SUITE_P(Fences, FailingDisk, ::testing::Values(Fence::stream, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(FailingDisk, LosesNothingWhereverItFails) {
  for (int nth = 1; nth < 60; nth += nth < 24 ? 1 : 5) {
    SCOPED_TRACE("call " + std::to_string(nth));
    survive({.operations = {FileOperation::write, FileOperation::sync, FileOperation::read},
             .nth = nth});
  }
}

TEST_P(FailingDisk, LosesNothingWhenItIsFull) {
  for (const int nth : {1, 2, 3, 5, 8, 13}) {
    SCOPED_TRACE("call " + std::to_string(nth));
    survive({.operations = {FileOperation::write},
             .verdict = Verdict::disk_full,
             .nth = nth,
             .for_ever = true});
  }
}

TEST(BusyDatabase, IsTriedAgain) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  {
    auto other = shop.raw();
    other.run("BEGIN IMMEDIATE");
    EXPECT_EQ(shop.relay().published, 0);
    other.run("ROLLBACK");
  }
  shop.clock.advance(3s);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "1 2");
}

// --- damaged rows

TEST(DamagedRows, OfAPointerToNoEventAreParked) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.raw().run("UPDATE outbox_messages SET sequence = 99 WHERE sequence = 2");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 3");
  const auto parked = shop.operations.show(GlobalSequence{99});
  ASSERT_TRUE(parked);
  EXPECT_EQ(parked->last_error, "event 99 doesn't exist");
}

TEST(DamagedRows, OfAnEventStopItsStreamAlone) {
  Shop shop;
  shop.append("order-1", R"({"total":1})");
  shop.append_all({"order-2", "order-1"});
  auto raw = shop.raw();
  raw.drop_triggers();
  raw.run(R"(UPDATE events SET payload = CAST('{"total":9}' AS BLOB) WHERE sequence = 1)");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2");
  EXPECT_THAT(shop.list(), ElementsAre("1 order-1 parked refused", "3 order-1 parked behind"));
  EXPECT_THAT(shop.operations.show(GlobalSequence{1})->last_error,
              HasSubstr("it doesn't match its checksum"));

  raw.run(R"(UPDATE events SET payload = CAST('{"total":1}' AS BLOB) WHERE sequence = 1)");
  shop.operations.retry({.stream = "order-1"});
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "2 1r1 3r2");
}

TEST(DamagedRows, WithoutAPayloadStopTheirStreamAlone) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-1"});
  auto raw = shop.raw();
  raw.drop_triggers();
  raw.run(
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
      "'payload          BLOB NOT NULL', 'payload          BLOB') WHERE name = 'events'");
  auto writer = shop.raw();
  writer.run("UPDATE events SET payload = NULL WHERE sequence = 1");
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "2");
  EXPECT_THAT(shop.list(), ElementsAre("1 order-1 parked refused", "3 order-1 parked behind"));
}

TEST(DamagedRows, InAnUnknownPartitionAreNamedAndRescued) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.raw().run("UPDATE outbox_messages SET partition = 7 WHERE sequence = 2");
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "1");

  const OutboxStatus status = shop.operations.status();
  EXPECT_EQ(status.partitions.back().id, PartitionId{7});
  EXPECT_EQ(status.partitions.back().pending, 1);
  EXPECT_EQ(status.partitions.back().stopped, StopReason::missing);
  EXPECT_EQ(shop.operations.sync(false, Mode::dry_run).rescued, 1);
  EXPECT_EQ(shop.operations.sync(false).rescued, 1);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2r1");
  EXPECT_THAT(shop.actions(),
              ElementsAre("ann sync took out of unknown partition 7: 1 message, 2"));
}

TEST(DamagedRows, OfAMissingPartitionAreFoundAndCountedAgain) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.append("order-3");
  shop.lose_relay();
  shop.raw().run("DELETE FROM outbox_messages; DELETE FROM outbox_partitions");
  shop.operations.reconcile();

  const PartitionStatus gone = shop.operations.status().partitions.back();
  EXPECT_EQ(gone.stopped, StopReason::missing);
  EXPECT_EQ(gone.redeliveries, 1);
  EXPECT_THAT(shop.operations.sync(false).added, ElementsAre(PartitionId{0}));
  EXPECT_EQ(shop.totals(), "1 to be sent again");
}

TEST(DamagedRows, OfARedeliveryInAnUnknownPartitionAreRescued) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.operations.republish({.from = GlobalSequence{2}});
  shop.raw().run("UPDATE outbox_redeliveries SET partition = 7");

  EXPECT_EQ(shop.operations.status().partitions.back().stopped, StopReason::missing);
  EXPECT_EQ(shop.operations.sync(false, Mode::dry_run).rescued, 1);
  EXPECT_EQ(shop.operations.sync(false).rescued, 1);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "1 2 2r2");
}

TEST(DamagedRows, OfAPartitionStopItAlone) {
  Shop shop{{.partition_count = 2}};
  for (int i = 0; i < 8; ++i) shop.append("order-" + std::to_string(i));
  auto raw = shop.raw();
  raw.run(
      "PRAGMA ignore_check_constraints = 1; UPDATE outbox_partitions SET epoch = -5 "
      "WHERE partition = 1");
  shop.relay();

  const OutboxStatus stopped = shop.operations.status();
  EXPECT_EQ(stopped.partitions[0].stopped, StopReason::damaged);
  EXPECT_THAT(stopped.partitions[0].stopped_detail,
              HasSubstr("its row in outbox_partitions has the epoch -5"));
  EXPECT_GT(stopped.partitions[0].pending, 0);
  EXPECT_EQ(stopped.partitions[1].pending, 0);

  raw.run("UPDATE outbox_partitions SET epoch = 5 WHERE partition = 1");
  shop.operations.adopt(PartitionId{1});
  shop.relay();
  EXPECT_EQ(shop.operations.status().pending, 0);
}

// --- the clock

/// Two workers in one process, and a clock that somebody sets.
struct SetClock : ::testing::TestWithParam<Fence> {
  void relay_both(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      shop.append("order-" + std::to_string(i % 5));
      shop.relay();
      shop.append("order-" + std::to_string(i % 3));
      other.run_once();
    }
  }
  void set_by(std::chrono::microseconds step) { shop.clock.jump_to(shop.clock.now() + step); }
  void finish() {
    for (int i = 0; i < 60; ++i) {
      shop.relay();
      other.run_once();
    }
    const auto evidence = test::compare(shop.store, shop.broker, GetParam());
    EXPECT_THAT(evidence.flaws, IsEmpty());
    EXPECT_EQ(evidence.duplicates, 0);
    std::int64_t owned = 0;
    for (const auto& partition : shop.operations.status().partitions) {
      owned += partition.owner.empty() ? 0 : 1;
    }
    EXPECT_EQ(owned, 4);
  }

  Shop shop{{.partition_count = 4, .fence = GetParam()}, {.worker = "a"}};
  test::FileBroker second{shop.dir.file("broker.db"), GetParam()};
  Relay other{shop.outbox, second, {.worker = "b"}};
};

INSTANTIATE_TEST_SUITE_P(EveryFence, SetClock,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(SetClock, AnHourAhead) {
  relay_both(10);
  set_by(1h);
  relay_both(20);
  finish();
}

TEST_P(SetClock, AnHourBack) {
  relay_both(10);
  set_by(-1h);
  relay_both(20);
  finish();
}

TEST_P(SetClock, ToAndFro) {
  relay_both(5);
  for (int i = 0; i < 6; ++i) {
    set_by(i % 2 == 0 ? 1h : -1h);
    relay_both(4);
  }
  finish();
}

}  // namespace
}  // namespace stela::damage_test
