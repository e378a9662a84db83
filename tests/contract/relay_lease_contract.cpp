// What every store does for relays that share partitions: leases them, and shows who works.
#include "contract/relay_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::relay_lease_contract {
namespace {

using namespace std::chrono_literals;
using test::RelayStoreContract;

TEST_P(RelayStoreContract, LeasesAPartitionToOneAtATime) {
  EXPECT_EQ(acquire().epoch, 1);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  subject->clock.advance(ttl - 1us);
  EXPECT_FALSE(store->acquire(all, "b", ttl));

  subject->clock.advance(1us);
  const auto taken = acquire(all, "b");

  EXPECT_EQ(taken.epoch, 2);
  EXPECT_TRUE(taken.unclean);
}

TEST_P(RelayStoreContract, RenewsALeaseThatIsStillHeld) {
  acquire();
  subject->clock.advance(ttl - 1s);
  EXPECT_TRUE(store->renew(leases[all], ttl));
  subject->clock.advance(ttl - 1s);
  EXPECT_FALSE(store->acquire(all, "b", ttl));
  subject->clock.advance(1s);
  EXPECT_FALSE(store->renew(leases[all], ttl)) << "it ran out";
}

TEST_P(RelayStoreContract, ReleasesForTheNextOne) {
  acquire();
  store->release(leases[all]);
  const auto next = acquire(all, "b");
  EXPECT_EQ(next.epoch, 2);
  EXPECT_FALSE(next.unclean);
}

TEST_P(RelayStoreContract, LetsOnlyTheOwnerRelease) {
  acquire();
  store->release({all, "b", 1});
  store->release({all, "a", 7});
  EXPECT_FALSE(store->acquire(all, "b", ttl));
}

TEST_P(RelayStoreContract, TakesALeaseThatEndsAbsurdlyLate) {
  subject->clock.advance(24h);
  acquire();
  subject->clock.advance(-24h);
  EXPECT_EQ(acquire(all, "b").epoch, 2);
}

TEST_P(RelayStoreContract, JudgesALeaseByItsOwnLength) {
  acquire();
  EXPECT_FALSE(store->acquire(all, "b", 3s)) << "a longer lease than b's own isn't absurd";
  EXPECT_FALSE(look().partitions.front().is_free);
  store->release(leases[all]);

  // By a clock that is 10 seconds ahead. b's own leases may end as late as this one.
  subject->clock.advance(10s);
  EXPECT_TRUE(store->acquire(all, "c", 3s));
  subject->clock.advance(-10s);
  EXPECT_TRUE(look().partitions.front().is_free);
  EXPECT_TRUE(store->acquire(all, "b", ttl));
}

TEST_P(RelayStoreContract, KeepsALeaseWhoseRenewalsAreLongerThanOthersAre) {
  acquire();
  subject->clock.advance(5s);
  ASSERT_TRUE(store->renew(leases[all], ttl));

  EXPECT_FALSE(store->acquire(all, "b", 3s));
  subject->clock.advance(ttl);
  EXPECT_TRUE(store->acquire(all, "b", 3s));
}

TEST_P(RelayStoreContract, JudgesAHeartbeatByItsOwnLength) {
  store->heartbeat("a", 20s, {{BrokerState::connected}});
  EXPECT_EQ(store->heartbeat("b", 4s, {{BrokerState::connected}}), 0);
  EXPECT_THAT(look().workers, ::testing::ElementsAre("a", "b"));
  store->leave("b");

  subject->clock.advance(10s);
  store->heartbeat("c", 4s, {{BrokerState::connected}});
  subject->clock.advance(-10s);
  EXPECT_THAT(look().workers, ::testing::ElementsAre("a"));
  EXPECT_EQ(store->heartbeat("a", 20s, {{BrokerState::connected}}), 1) << "c is forgotten";
}

TEST_P(RelayStoreContract, ShowsPartitionsAndWorkers) {
  begin(2);
  store->heartbeat("a", 20s, {{BrokerState::connected}});
  store->heartbeat("b", 20s, {{BrokerState::down, "no server answers"}, true});
  acquire(PartitionId{1});
  const relay::Overview now = look();
  EXPECT_THAT(now.workers, ::testing::ElementsAre("a", "b"));
  EXPECT_THAT(now.cut_off, ::testing::ElementsAre("b"));
  ASSERT_EQ(now.partitions.size(), 2u);
  EXPECT_EQ(now.partitions[0].owner, "a");
  EXPECT_FALSE(now.partitions[0].is_free);
  EXPECT_TRUE(now.partitions[1].is_free);

  store->heartbeat("b", 20s, {{BrokerState::connected}});
  EXPECT_TRUE(look().cut_off.empty());
  store->leave("b");
  EXPECT_THAT(look().workers, ::testing::ElementsAre("a"));
  subject->clock.advance(20s);

  const relay::Overview later = look();
  EXPECT_TRUE(later.workers.empty());
  EXPECT_TRUE(later.partitions[0].is_free);
  EXPECT_TRUE(later.partitions[0].is_expired);
}

}  // namespace
}  // namespace stela::relay_lease_contract
