// What every store does for a relay with partitions: holds generations in order, and stops one.
#include "contract/relay_store.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stela::relay_partition_contract {
namespace {

using test::RelayStoreContract;

TEST_P(RelayStoreContract, HoldsANewGenerationUntilTheOldOneIsDrained) {
  append({1, 2});
  acquire();
  subject->operations().resize(2, "ann");
  append({1});
  const PartitionId later = PartitionId::of("thing-1", 2);
  EXPECT_EQ(next(), "1 2");
  EXPECT_EQ(next(later), "");
  publish(1);
  EXPECT_EQ(next(later), "");
  EXPECT_TRUE(look().partitions[0].is_needed);

  publish(2);

  EXPECT_EQ(next(later), "3");
  EXPECT_FALSE(look().partitions[0].is_needed);
}

TEST_P(RelayStoreContract, RetriesUnderTheGenerationThatIsBeingDrained) {
  append({1, 1});
  acquire();
  park(1);
  subject->operations().resize(2, "ann");
  append({1});
  EXPECT_EQ(retry(1, 1), 1);
  EXPECT_EQ(next(), "1r1 2");
  EXPECT_EQ(next(PartitionId::of("thing-1", 2)), "");
}

/// "2 from 4": of the first message of the partition.
std::string generation_in(relay::OutboxPort& store, PartitionId partition) {
  const auto batch = store.next(partition, {}, {1});
  if (batch->messages.empty()) return "none";
  const GenerationMark& generation = batch->messages.front().generation;
  return std::to_string(generation.number) + " from " + std::to_string(generation.first.value());
}

TEST_P(RelayStoreContract, NamesTheGenerationThatAMessageIsPublishedUnder) {
  append({1});
  acquire();
  subject->operations().resize(2, "ann");
  append({1});
  const PartitionId later = PartitionId::of("thing-1", 2);
  EXPECT_EQ(generation_in(*store, all), "1 from 1");
  publish(1);
  EXPECT_EQ(generation_in(*store, later), "2 from 2");
  acquire(later);
  publish(2, 0, later);

  EXPECT_EQ(republish({GlobalSequence{1}}), 1);

  EXPECT_EQ(generation_in(*store, later), "2 from 2") << "it is sent again under the newest";
}

TEST_P(RelayStoreContract, StopsAPartitionUntilItIsAdopted) {
  append({1});
  acquire();
  EXPECT_TRUE(store->stop(leases[all], StopReason::broker_lost, "it is empty"));
  store->release(leases[all]);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  EXPECT_TRUE(look().partitions[0].is_stopped);

  subject->operations().adopt(all, 41, "ann");

  const auto adopted = acquire(all, "b");
  EXPECT_EQ(adopted.broker_sequence, 41u);
  EXPECT_TRUE(adopted.adopted);
  EXPECT_FALSE(look().partitions[0].is_stopped);
}

TEST_P(RelayStoreContract, LeasesAStoppedPartitionForAComparison) {
  append({1});
  acquire();
  EXPECT_FALSE(store->acquire_lost(all, "b", ttl)) << "it isn't stopped";
  EXPECT_TRUE(store->stop(leases[all], StopReason::broker_lost, "it ends at 4"));
  EXPECT_FALSE(store->acquire_lost(all, "b", ttl)) << "it has an owner";
  store->release(leases[all]);
  EXPECT_TRUE(look().partitions[0].is_lost);

  const auto lent = store->acquire_lost(all, "b", ttl);
  ASSERT_TRUE(lent);
  EXPECT_FALSE(store->continue_lost({all, "a", lent->epoch, lent->run}));
  EXPECT_TRUE(store->continue_lost({all, "b", lent->epoch, lent->run}));
  store->release({all, "b", lent->epoch, lent->run});

  EXPECT_FALSE(look().partitions[0].is_stopped);
  EXPECT_TRUE(store->acquire(all, "c", ttl));
}

TEST_P(RelayStoreContract, LendsNoPartitionThatStoppedForAnotherReason) {
  append({1});
  acquire();
  EXPECT_TRUE(store->stop(leases[all], StopReason::foreign_writer, "somebody else's"));
  store->release(leases[all]);

  EXPECT_FALSE(look().partitions[0].is_lost);
  EXPECT_FALSE(store->acquire_lost(all, "b", ttl));
}

TEST_P(RelayStoreContract, ContinuesNoPartitionThatWasAdoptedMeanwhile) {
  append({1});
  acquire();
  EXPECT_TRUE(store->stop(leases[all], StopReason::broker_lost, "it ends at 4"));
  store->release(leases[all]);
  const auto lent = store->acquire_lost(all, "b", ttl);
  ASSERT_TRUE(lent);
  subject->operations().adopt(all, 41, "ann");

  EXPECT_FALSE(store->continue_lost({all, "b", lent->epoch, lent->run}));
  store->release({all, "b", lent->epoch, lent->run});

  EXPECT_EQ(acquire(all, "c").broker_sequence, 41u);
}

}  // namespace
}  // namespace stela::relay_partition_contract
