// What every store does with messages: hands them out in order, and notes what became of them.
#include "contract/relay_store.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stela::relay_message_contract {
namespace {

using namespace std::chrono_literals;
using test::RelayStoreContract;

TEST_P(RelayStoreContract, HandsOutPendingMessagesInOrder) {
  append({1, 2, 1, 3});
  EXPECT_EQ(next(), "1 2 3 4");
  EXPECT_EQ(next(all, 2), "1 2");
  EXPECT_EQ(next(all, 2, {.sequence = GlobalSequence{2}}), "3 4");
}

TEST_P(RelayStoreContract, HandsOutNoMoreBytesThanAskedForButOneMessage) {
  append({1, 2, 1, 3});
  const auto payload =
      static_cast<std::int64_t>(store->next(all, {}, {1})->messages.front().event->payload.size());
  ASSERT_GT(payload, 0);
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 3 * payload}), "1 2 3");
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 3 * payload - 1}), "1 2");
  EXPECT_EQ(next(all, {.messages = 100, .bytes = 0}), "1");
  EXPECT_EQ(next(all, {.messages = 1, .bytes = 3 * payload}), "1");
}

TEST_P(RelayStoreContract, ForgetsMarkedMessagesAndTellsTheNextOwner) {
  append({1, 2});
  acquire();
  EXPECT_TRUE(publish(1));
  relay::Advance flight{.flight_count = 1, .flight_through = GlobalSequence{2}};
  EXPECT_TRUE(store->advance(leases[all], flight, true));
  EXPECT_EQ(next(), "2");

  subject->clock.advance(ttl);
  const auto next = acquire(all, "b");

  EXPECT_EQ(next.published_through, GlobalSequence{1});
  EXPECT_EQ(next.broker_sequence, 1u);
  EXPECT_EQ(next.broker_id, "id of 1");
  EXPECT_EQ(next.flight_count, 1);
  EXPECT_EQ(next.flight_through, GlobalSequence{2});
}

TEST_P(RelayStoreContract, TakesNothingFromAFormerOwner) {
  append({1});
  acquire();
  const relay::Lease stale = leases[all];
  subject->clock.advance(ttl);
  acquire(all, "b");
  leases[all] = stale;
  subject->arrive(all, 1, 0);

  EXPECT_FALSE(mark(1));
  EXPECT_FALSE(park(1));
  EXPECT_FALSE(store->note(stale, {.attempts = 3, .backoff = 9s}));
  EXPECT_FALSE(store->stop(stale, StopReason::poison, "event 1"));
  EXPECT_EQ(next(), "1");
  EXPECT_FALSE(look().partitions[0].is_stopped);
}

TEST_P(RelayStoreContract, RemembersTrouble) {
  append({1});
  acquire();
  const relay::PendingMessage first{.sequence = GlobalSequence{1}};
  EXPECT_TRUE(store->note(
      leases[all],
      {.message = first, .message_attempts = 2, .attempts = 4, .backoff = 60s, .error = "full"}));
  subject->clock.advance(20s);

  const auto batch = store->next(all, {}, {1});
  EXPECT_EQ(batch->messages[0].attempts, 2);
  const auto next = acquire(all, "b");
  EXPECT_EQ(next.attempts, 4);
  EXPECT_EQ(next.backoff_left, 40s);
}

TEST_P(RelayStoreContract, KnowsTheIdsOfEvents) {
  append({1});
  const auto batch = store->next(all, {}, {1});
  const std::vector<GlobalSequence> asked{GlobalSequence{1}, GlobalSequence{9}};
  const auto ids = store->ids_of(asked);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], batch->messages[0].event->id);
  EXPECT_EQ(ids[1], EventId{});
}

}  // namespace
}  // namespace stela::relay_message_contract
