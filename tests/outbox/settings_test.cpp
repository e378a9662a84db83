// Partitions, options, and the first enabling.
#include "outbox/shop.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

namespace stela::settings_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- partitions

TEST(PartitionId, IsTheCrc32OfTheKey) {
  // CRC-32 as in zlib.
  EXPECT_EQ(PartitionId::of("123456789", 16), PartitionId::at(0xcbf43926 % 16, 16));
  EXPECT_EQ(PartitionId::of("order-1", 16), PartitionId::at(0xe0b37fef % 16, 16));
  EXPECT_EQ(PartitionId::of("", 16), PartitionId::at(0, 16));
  EXPECT_EQ(PartitionId::of("123456789", 1024), PartitionId::at(0xcbf43926 % 1024, 1024));
  EXPECT_EQ(PartitionId::of("123456789", 1), PartitionId{0});
  EXPECT_EQ(PartitionId::of("The quick brown fox jumps over the lazy dog", 1000),
            PartitionId::at(0x414fa339 % 1000, 1000));
}

TEST(PartitionId, HasALabelThatSortsAndNeverChanges) {
  EXPECT_EQ(PartitionId::at(0, 1).label(), "all");
  EXPECT_EQ(PartitionId::at(0, 2).label(), "p00");
  EXPECT_EQ(PartitionId::at(7, 16).label(), "p07");
  EXPECT_EQ(PartitionId::at(123, 1024).label(), "p123");
}

TEST(PartitionId, SpreadsStreamsEvenly) {
  std::vector<int> counts(17);
  for (int i = 0; i < 16'000; ++i) {
    ++counts[static_cast<std::size_t>(PartitionId::of("order-" + std::to_string(i), 16).number)];
  }
  EXPECT_EQ(counts[0], 0);
  for (std::size_t i = 1; i < counts.size(); ++i) {
    EXPECT_GT(counts[i], 850);
    EXPECT_LT(counts[i], 1150);
  }
}

/// By the customer in the payload.
class ByCustomer final : public Partitioner {
 public:
  std::string_view name() const noexcept override { return "customer"; }
  std::string_view key(const PartitionedEvent& event, std::string&) const override {
    return event.payload;
  }
};

TEST(Partitioner, CanBeAnyKeyOfTheEvent) {
  const ByCustomer by_customer;
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  const Outbox outbox{store, {.partition_count = 8, .partitioner = &by_customer}};
  for (const char* stream : {"order-1", "order-2", "order-3"}) {
    test::append(store, stream, {NewEvent{"placed", 1, true, "\"ann\""}});
  }

  OutboxOperations operations{store, {.partitioner = &by_customer}};
  for (const OutboxMessage& message : operations.list()) {
    EXPECT_EQ(message.partition, PartitionId::of("\"ann\"", 8));
  }
  OutboxOperations stranger{store};
  EXPECT_EQ(stranger.status().pending, 3) << "looking needs no partitioner";
  EXPECT_THAT(message_of<UsageError>([&] { stranger.reconcile(); }),
              HasSubstr("this database's outbox is partitioned by 'customer', and 'stream' was "
                        "given"));
}

/// By the actor in the metadata; events without metadata can't be placed.
class ByActor final : public Partitioner {
 public:
  std::string_view name() const noexcept override { return "actor"; }
  std::string_view key(const PartitionedEvent& event, std::string&) const override {
    if (event.metadata.empty()) throw std::domain_error{"no actor"};
    return event.metadata;
  }
};

TEST(Partitioner, PlacesAnEventByItsMetadataWhenItIsAppendedAndWhenItIsBackfilled) {
  const ByActor by_actor;
  const auto dir = test::TempDir::in_memory();
  std::vector<PartitionId> placed;
  for (const bool is_backfill : {false, true}) {
    auto store = sqlite::open(dir.file(is_backfill ? "backfilled.db" : "live.db"));
    const OutboxOptions options{
        .partition_count = 1024, .partitioner = &by_actor, .enable = Enable::backfill};
    std::optional<Outbox> outbox;
    if (!is_backfill) outbox.emplace(store, options);
    {
      const ContextScope ann{{.actor = "ann"}};
      test::append(store, "order-1", {NewEvent{"placed", 1, true, "1"}});
      test::append(store, "order-2", {NewEvent{"placed", 1, true, "1"}});
    }
    if (is_backfill) outbox.emplace(store, options);
    OutboxOperations operations{store, {.partitioner = &by_actor}};
    for (const OutboxMessage& message : operations.list()) placed.push_back(message.partition);
  }

  EXPECT_THAT(placed, SizeIs(4));
  EXPECT_THAT(placed, Each(placed.front()));
  EXPECT_NE(placed.front(), PartitionId::of("order-1", 1024));
}

TEST(Partitioner, ThatThrowsRollsBackItsAppendAlone) {
  const ByActor by_actor;
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  const Outbox outbox{store, {.partition_count = 8, .partitioner = &by_actor}};
  EXPECT_THROW(test::append(store, "order-1", {NewEvent{"placed", 1, true, "1"}}),
               std::domain_error);
  const ContextScope ann{{.actor = "ann"}};
  test::append(store, "order-1", {NewEvent{"placed", 1, true, "1"}});

  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  EXPECT_EQ(OutboxOperations{store}.status().pending, 1);
}

// --- options

std::string refusal(const RelayOptions& options) {
  return message_of<UsageError>([&] { check(options); });
}

TEST(RelayOptions, AreSoundByDefault) {
  EXPECT_NO_THROW(check({}));
}

TEST(RelayOptions, AreTheSeedsUnlessTheReferenceSaysWhy) {
  const RelayOptions options;
  EXPECT_EQ(options.lease_ttl, 15s);
  EXPECT_EQ(options.lease_renew, 6s);
  EXPECT_EQ(options.heartbeat_ttl, 20s);
  EXPECT_EQ(options.idle_backoff, 1s);
  EXPECT_EQ(options.retry_jitter, 0.25);
  EXPECT_EQ(options.max_attempts, 5);
  EXPECT_EQ(options.retention, 168h);
  EXPECT_EQ(options.batch_size, 500);
  EXPECT_EQ(options.window, 2000);
  EXPECT_EQ(options.max_in_flight_bytes, 32 * 1024 * 1024);
  EXPECT_EQ(options.publish_timeout, 5s);
  EXPECT_EQ(options.retry_backoff, 1s);
  EXPECT_EQ(options.retry_backoff_max, 60s);
  EXPECT_EQ(options.on_poison, OnPoison::park);
}

TEST(RelayOptions, AreRefusedOutOfRange) {
  EXPECT_THAT(refusal({.lease_ttl = 0s}), HasSubstr("lease_ttl is 0 ms; it must be above 0"));
  EXPECT_THAT(refusal({.idle_backoff = -1s}), HasSubstr("idle_backoff is -1000 ms"));
  EXPECT_THAT(refusal({.publish_timeout = 0s}), HasSubstr("publish_timeout"));
  EXPECT_THAT(refusal({.batch_size = 0}), HasSubstr("batch_size is 0; it must be 1 to 10000"));
  EXPECT_THAT(refusal({.batch_size = 10'001}), HasSubstr("batch_size is 10001"));
  EXPECT_THAT(refusal({.window = 0}), HasSubstr("window is 0; it must be 1 to 100000"));
  EXPECT_THAT(refusal({.retry_jitter = 1.5}), HasSubstr("retry_jitter is 1.5; it must be 0 to 1"));
  EXPECT_THAT(refusal({.max_attempts = 0}), HasSubstr("max_attempts is 0"));
  EXPECT_THAT(refusal({.retention = 0h}), HasSubstr("retention is 0 ms; it must be 1 h or more"));
  EXPECT_THAT(refusal({.worker = std::string(129, 'w')}), HasSubstr("at most 128 bytes"));
}

TEST(RelayOptions, AreRefusedIfTheyContradictEachOther) {
  EXPECT_THAT(refusal({.lease_ttl = 10s, .lease_renew = 5s}),
              HasSubstr("a lease must outlive one renewal that fails"));
  EXPECT_THAT(refusal({.lease_ttl = 1s}),
              HasSubstr("lease_renew (6000 ms) must be less than half of lease_ttl (1000 ms)"));
  EXPECT_THAT(refusal({.heartbeat_ttl = 6s}), HasSubstr("the heartbeat is sent with the renewals"));
  EXPECT_THAT(refusal({.retry_backoff = 61s}),
              HasSubstr("retry_backoff (61000 ms) is more than retry_backoff_max (60000 ms)"));
  EXPECT_THAT(refusal({.publish_timeout = 15s}),
              HasSubstr("an owner must hear of its messages while it still is the owner"));
}

// --- first enabling

struct Enabling : ::testing::Test {
  Enabling() {
    test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
    test::append(store, "order-1", {NewEvent{"noted", 1, false, "{}"}});
    test::append(store, "order-2", {NewEvent{"placed", 1, true, "{}"}});
  }
  std::vector<std::int64_t> waiting() {
    std::vector<std::int64_t> sequences;
    for (const OutboxMessage& message : OutboxOperations{store}.list()) {
      sequences.push_back(message.sequence.value());
    }
    return sequences;
  }

  test::TempDir dir = test::TempDir::in_memory();
  Store store{sqlite::open(dir.file("shop.db"))};
};

TEST_F(Enabling, NeedsAChoiceForExistingEvents) {
  EXPECT_THAT(message_of<UsageError>([&] { Outbox{store}; }),
              HasSubstr("Enable::backfill (--backfill) publishes them"));
}

TEST_F(Enabling, LeavesTheHistoryAlone) {
  const Outbox outbox{store, {.enable = Enable::from_now}};
  test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
  EXPECT_THAT(waiting(), ElementsAre(4));
  EXPECT_FALSE(OutboxOperations{store}.show(GlobalSequence{1}));
  EXPECT_EQ(OutboxOperations{store}.reconcile().missing, 0);
}

TEST_F(Enabling, EnqueuesTheHistoryInOrder) {
  const Outbox outbox{store, {.partition_count = 4, .enable = Enable::backfill}};
  test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
  EXPECT_THAT(waiting(), ElementsAre(1, 3, 4));
  EXPECT_EQ(OutboxOperations{store}.status().pending, 3);
}

TEST_F(Enabling, IsAskedForOnce) {
  { const Outbox outbox{store, {.enable = Enable::backfill}}; }
  const Outbox again{store, {.enable = Enable::backfill}};
  EXPECT_THAT(waiting(), ElementsAre(1, 3));
}

TEST(OutboxFacts, CantBeChangedByAskingForOthers) {
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  { const Outbox outbox{store, {.partition_count = 4}}; }
  EXPECT_THAT(message_of<UsageError>([&] { Outbox(store, {.partition_count = 8}); }),
              HasSubstr("this database's outbox has a partition_count of 4, and 8 was asked for"));
  EXPECT_THAT(message_of<UsageError>([&] { Outbox(store, {.fence = Fence::none}); }),
              HasSubstr("this database's outbox has the fence stream, and none was asked for"));
  EXPECT_THAT(message_of<UsageError>([&] { Outbox(store, {.leasing = false}); }),
              HasSubstr("this database's outbox has leasing on, and off was asked for"));
}

}  // namespace
}  // namespace stela::settings_test
