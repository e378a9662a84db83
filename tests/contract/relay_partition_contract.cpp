// What every store does for a relay with partitions: holds generations in order, and stops one.
#include "contract/relay_store.hpp"

#include <gtest/gtest.h>

namespace stela {
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

TEST_P(RelayStoreContract, StopsAPartitionUntilItIsAdopted) {
  append({1});
  acquire();
  EXPECT_TRUE(store->stop(leases[all], "broker_lost", "it is empty"));
  store->release(leases[all]);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  EXPECT_TRUE(look().partitions[0].is_stopped);

  subject->operations().adopt(all, 41, "ann");

  const auto adopted = acquire(all, "b");
  EXPECT_EQ(adopted.broker_sequence, 41u);
  EXPECT_TRUE(adopted.adopted);
  EXPECT_FALSE(look().partitions[0].is_stopped);
}

}  // namespace
}  // namespace stela
