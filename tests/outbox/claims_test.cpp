// Without leasing: workers claim messages, and what they mark is compared with their claims.
#include "outbox/shop.hpp"
#include "tables/claims_store.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::claims_test {
namespace {

using namespace std::chrono_literals;
using outbox::ClaimsStore;
using test::message_of;
using test::Shop;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr PartitionId all{0};
constexpr auto ttl = 15s;
const OutboxOptions without_leasing{.fence = Fence::none, .leasing = false};

/// A worker's port, with its claim.
class Claimant {
 public:
  Claimant(Shop& shop, std::string name, std::chrono::seconds claim_ttl = ttl)
      : store_{shop.store}, name_{std::move(name)} {
    epoch_ = store_.acquire(all, name_, claim_ttl)->epoch;
  }

  /// "1 2 3r1": what it gets.
  std::string next(int limit = 10, std::int64_t bytes = INT64_MAX) {
    std::string text;
    const auto batch = store_.next(all, {}, {limit, bytes});
    for (const auto& message : batch->messages) {
      if (!text.empty()) text += ' ';
      text += std::to_string(message.sequence.value());
      if (message.redelivery > 0) text += 'r' + std::to_string(message.redelivery);
      EXPECT_NE(message.event, nullptr);
    }
    return text;
  }
  void mark(std::int64_t first, std::int64_t last, std::int64_t redelivery = 0) {
    relay::Advance advance;
    advance.published.push_back({.first = GlobalSequence{first},
                                 .last = GlobalSequence{last},
                                 .count = last - first + 1,
                                 .redelivery = redelivery});
    EXPECT_TRUE(store_.advance(lease(), advance, false));
  }
  void park(std::int64_t sequence) {
    relay::Advance advance;
    advance.parked.push_back({.sequence = GlobalSequence{sequence}, .attempts = 1, .error = "bad"});
    EXPECT_TRUE(store_.advance(lease(), advance, false));
  }
  void note(std::int64_t sequence, int attempts, std::chrono::microseconds backoff) {
    const relay::PendingMessage message{.sequence = GlobalSequence{sequence}};
    EXPECT_TRUE(store_.note(lease(), {.message = message,
                                      .message_attempts = attempts,
                                      .message_backoff = backoff,
                                      .error = "no"}));
  }
  bool renew() { return store_.renew(lease(), ttl); }
  void release() { store_.release(lease()); }

 private:
  relay::Lease lease() const { return {all, name_, epoch_}; }

  ClaimsStore store_;
  std::string name_;
  std::int64_t epoch_ = 0;
};

TEST(Claims, AreNeverGivenTwice) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2", "order-3", "order-4", "order-5"});
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};

  EXPECT_EQ(a.next(3), "1 2 3");
  EXPECT_EQ(b.next(3), "4 5");
  EXPECT_EQ(a.next(3), "");
  EXPECT_EQ(b.next(3), "");
  EXPECT_EQ(shop.operations.status().in_flight, 5);
  EXPECT_THAT(shop.list({.state = MessageState::in_flight, .limit = 1}),
              ElementsAre("1 order-1 in_flight"));
}

TEST(Claims, RunOutAndAreTakenByOthers) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2"});
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(), "1 2");

  shop.clock.advance(ttl - 1s);
  EXPECT_EQ(b.next(), "");
  shop.clock.advance(1s);

  EXPECT_EQ(b.next(), "1 2");
  EXPECT_FALSE(a.renew()) << "what a paused worker had claimed may be another's";
  a.mark(1, 2);
  EXPECT_EQ(shop.totals(), "2 pending");
  b.mark(1, 2);
  EXPECT_EQ(shop.totals(), "2 published");
}

TEST(Claims, AreLeftToTheirWorkerByOneWhoseOwnAreShorter) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2"});
  Claimant a{shop, "a"};
  Claimant b{shop, "b", 3s};
  EXPECT_EQ(a.next(), "1 2");

  EXPECT_EQ(b.next(), "");
  shop.clock.advance(ttl);
  EXPECT_EQ(b.next(), "1 2");
}

TEST(Claims, AreTakenIfTheyEndAbsurdlyLate) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2"});
  shop.clock.advance(24h);
  Claimant a{shop, "a"};
  EXPECT_EQ(a.next(), "1 2");
  shop.clock.advance(-24h);
  Claimant b{shop, "b"};

  EXPECT_EQ(b.next(), "1 2");
}

TEST(Claims, LastLongerWhenTheyAreRenewed) {
  Shop shop{without_leasing};
  shop.append("order-1");
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(), "1");

  for (int i = 0; i < 5; ++i) {
    shop.clock.advance(6s);
    EXPECT_TRUE(a.renew());
    EXPECT_EQ(b.next(), "");
  }

  a.mark(1, 1);
  EXPECT_EQ(shop.totals(), "1 published");
}

TEST(Claims, OfAnotherAreNotTouchedByARange) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2", "order-3"});
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(1), "1");
  EXPECT_EQ(b.next(1), "2");
  EXPECT_EQ(a.next(1), "3");

  a.mark(1, 3);

  EXPECT_EQ(shop.totals(), "1 pending, 2 published");
  b.mark(2, 2);
  EXPECT_EQ(shop.totals(), "3 published");
}

TEST(Claims, OfAnotherAreNeitherParkedNorBackedOff) {
  Shop shop{without_leasing};
  shop.append("order-1");
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(), "1");

  b.park(1);
  b.note(1, 3, 60s);
  EXPECT_EQ(shop.totals(), "1 pending");
  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->attempts, 0);
  a.note(1, 3, 60s);
  EXPECT_EQ(shop.operations.show(GlobalSequence{1})->attempts, 3);
  a.park(1);
  EXPECT_EQ(shop.totals(), "1 parked");
}

TEST(Claims, AreGivenBackOnRelease) {
  Shop shop{without_leasing};
  shop.append("order-1");
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(), "1");
  a.release();
  EXPECT_EQ(b.next(), "1");
}

TEST(Claims, CoverRedeliveriesToo) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2"});
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  EXPECT_EQ(a.next(1), "1");
  a.mark(1, 1);
  shop.operations.republish({.stream = "order-1"});

  EXPECT_EQ(a.next(), "1r1 2");
  EXPECT_EQ(b.next(), "");
  b.mark(1, 1, 1);
  EXPECT_EQ(shop.totals(), "1 pending, 1 to be sent again, 1 published");
  a.mark(1, 1, 1);
  EXPECT_EQ(shop.totals(), "1 pending, 1 published");
}

TEST(Claims, AreOfNoMoreBytesThanAskedForButOneMessage) {
  Shop shop{without_leasing};
  const std::string payload(1'000, 'x');
  for (int i = 1; i <= 5; ++i) shop.append("order-" + std::to_string(i), payload);
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};

  EXPECT_EQ(a.next(10, 2'999), "1 2");
  EXPECT_EQ(b.next(10, 1), "3") << "what doesn't fit is left to others";
  EXPECT_EQ(a.next(10, 2'000), "4 5");
}

TEST(Claims, CountTheBytesOfRedeliveriesToo) {
  Shop shop{without_leasing};
  const std::string payload(1'000, 'x');
  for (int i = 1; i <= 4; ++i) shop.append("order-" + std::to_string(i), payload);
  Claimant a{shop, "a"};
  EXPECT_EQ(a.next(2), "1 2");
  a.mark(1, 2);
  shop.operations.republish({.last = GlobalSequence{2}});

  EXPECT_EQ(a.next(10, 1), "1r1");
  EXPECT_EQ(a.next(10, 2'000), "2r2 3");
  EXPECT_EQ(a.next(10, 0), "4");
}

TEST(Claims, OfAClockThatWasWrongDontLastForEver) {
  Shop shop{without_leasing};
  shop.append("order-1");
  Claimant a{shop, "a"};
  Claimant b{shop, "b"};
  shop.clock.advance(24h * 365);
  EXPECT_EQ(a.next(), "1");
  shop.clock.advance(-24h * 365);
  EXPECT_EQ(b.next(), "1");
}

// --- the relay

TEST(RelayWithoutLeasing, SharesMessagesAmongWorkers) {
  Shop shop{without_leasing};
  test::FileBroker second{shop.dir.file("broker.db"), Fence::none};
  Relay other{shop.outbox, second, {.worker = "other"}};
  std::vector<std::int64_t> published(2);
  for (int i = 0; i < 30; ++i) {
    shop.append("order-" + std::to_string(i % 7));
    published[static_cast<std::size_t>(i % 2)] +=
        i % 2 == 0 ? shop.relay().published : other.tick().published;
  }

  EXPECT_EQ(published[0] + published[1], 30);
  EXPECT_GT(published[1], 0);
  EXPECT_EQ(shop.totals(), "30 published");
  EXPECT_EQ(shop.relay().active_workers, 2);
}

TEST(RelayWithoutLeasing, KeepsTheOrderOfAStreamIfItIsAlone) {
  Shop shop{without_leasing, {.max_attempts = 9}};
  shop.append_all({"order-1", "order-1", "order-2"});
  shop.rejected = {1};
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "3");
  shop.lose_relay();
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "3 5");

  shop.rejected.clear();
  shop.clock.advance(2min);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "3 5 1 2 4");
  EXPECT_EQ(shop.totals(), "5 published");
}

TEST(RelayWithoutLeasing, PublishesItsClaimsOnceTheBrokerHasRoom) {
  Shop shop{without_leasing};
  bool is_full = true;
  shop.broker.refuse = [&](const OutgoingMessage&) -> std::optional<Answer::Kind> {
    return is_full ? std::optional{Answer::Kind::full} : std::nullopt;
  };
  shop.append_all({"order-1", "order-2", "order-1"});
  shop.relay();
  EXPECT_EQ(shop.totals(), "3 pending");

  is_full = false;
  for (int second = 0; second < 60; ++second) shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3");
  EXPECT_EQ(shop.totals(), "3 published");
}

TEST(RelayWithoutLeasing, TakesOverClaimsOfADeadWorker) {
  Shop shop{without_leasing};
  shop.append_all({"order-1", "order-2", "order-3"});
  EXPECT_EQ(Claimant(shop, "dead").next(2), "1 2");

  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "3");
  shop.clock.advance(ttl);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "3 1 2");
}

TEST(RelayWithoutLeasing, ForgetsItsClaimsAfterAPause) {
  Shop shop{without_leasing, {.max_attempts = 9}};
  shop.append("order-1");
  shop.rejected = {1};
  shop.relay();
  shop.clock.advance(ttl * 2);
  Claimant other{shop, "other"};
  EXPECT_EQ(other.next(), "1");
  shop.rejected.clear();

  EXPECT_EQ(shop.relay().fenced, 1);
  EXPECT_EQ(shop.broker.log(all), "") << "it is the other's now";
}

TEST(RelayWithoutLeasing, IsRefusedWithAFenceOrPartitions) {
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  EXPECT_THAT(message_of<UsageError>([&] {
                Outbox{store, {.fence = Fence::stream, .leasing = false}};
              }),
              HasSubstr("a fence needs leasing"));
  EXPECT_THAT(message_of<UsageError>([&] {
                Outbox{store, {.partition_count = 4, .fence = Fence::none, .leasing = false}};
              }),
              HasSubstr("partitions are shared by leases"));
  Outbox outbox{store, without_leasing};
  EXPECT_FALSE(outbox.leasing());
  OutboxOperations operations{store};
  EXPECT_THAT(message_of<UsageError>([&] { operations.resize(4); }),
              HasSubstr("this outbox has no leasing, so it has one partition"));
  EXPECT_EQ(operations.status().partition_count, 1);
}

}  // namespace
}  // namespace stela::claims_test
