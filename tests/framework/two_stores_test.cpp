#include "support/counters.hpp"
#include "support/messages.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::two_stores_test {
namespace {

using test::DemandCounter;
using test::message_of;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct RollBack {};

TEST(TwoStores, AreRefusedAnAggregateThatATransactionOfTheOtherIsNotFinishedWith) {
  const Id<DemandCounter> id = Id<DemandCounter>::from("1");
  testing::MemoryStore one;
  testing::MemoryStore other;
  // Its version there is what the open transaction makes it here.
  DemandCounter foreign_counter{id};
  foreign_counter.add(1);
  Repository<DemandCounter>{other}.save(foreign_counter);
  DemandCounter counter{id};
  counter.add(10);
  EXPECT_THROW(one.transact([&](Transaction& transaction) {
    Repository<DemandCounter>{transaction}.save(counter);
    counter.add(20);
    other.transact([&](Transaction& foreign) {
      EXPECT_THAT(message_of<UsageError>([&] { Repository<DemandCounter>{foreign}.save(counter); }),
                  HasSubstr("in a transaction that hasn't ended"));
    });
    transaction.transact(
        [&](Transaction& savepoint) { Repository<DemandCounter>{savepoint}.save(counter); });
    throw RollBack{};
  }),
               RollBack);

  EXPECT_EQ(counter.version(), StreamVersion{0});
  EXPECT_THAT(counter.changes(), SizeIs(2));
  EXPECT_EQ(other.last_sequence(), GlobalSequence{1});
}

}  // namespace
}  // namespace stela::two_stores_test
