#include "support/counters.hpp"
#include "support/histories.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace stela::replaced_aggregate_test {
namespace {

using Counter = test::SnapshotCounter<3>;

/// An aggregate whose variable a listener assigns to while it is being saved.
class ReplacedAggregate : public ::testing::Test {
 protected:
  Counter counter_of(int events) {
    Counter counter{id};
    for (int i = 0; i < events; ++i) counter.add(1);
    return counter;
  }
  /// At the next commit only.
  Subscription at_commit(std::function<void()> work) {
    return store.on_commit([work = std::move(work)](const CommitNotice&) mutable {
      if (const auto once = std::exchange(work, {})) once();
    });
  }
  static std::string standing(const Counter& counter) {
    return "version " + std::to_string(counter.version().value()) + ", " +
           std::to_string(counter.changes().size()) + " unsaved, sum " +
           std::to_string(counter.state().sum);
  }
  std::int64_t snapshot_version() {
    const auto found =
        store.find_snapshot(id.stream(), StreamVersion::max(), GlobalSequence::max());
    return found ? found->version.value() : 0;
  }

  const Id<Counter> id = Id<Counter>::from("1");
  testing::MemoryStore store;
  Repository<Counter> counters{store};
};

TEST_F(ReplacedAggregate, IsTheOneTheListenerLoaded) {
  Counter counter = counter_of(1);
  const Subscription loading = at_commit([&] { counter = counters.load(id); });
  counters.save(counter);

  EXPECT_EQ(standing(counter), "version 1, 0 unsaved, sum 1");
}

TEST_F(ReplacedAggregate, KeepsEventsThatTheListenerRecorded) {
  Counter counter = counter_of(1);
  const Subscription recording = at_commit([&] {
    counter = counters.load(id);
    counter.add(50);
  });
  counters.save(counter);
  EXPECT_EQ(standing(counter), "version 1, 1 unsaved, sum 51");

  counters.save(counter);
  EXPECT_EQ(counters.load(id).state().sum, 51);
}

TEST_F(ReplacedAggregate, GivesNoSnapshotOfUnsavedEvents) {
  Counter counter = counter_of(2);
  counters.save(counter);
  counter.add(1);
  const Subscription recording = at_commit([&] {
    counter = counters.load(id);
    counter.add(50);
  });
  counters.save(counter);

  EXPECT_EQ(counters.load(id).state().sum, 3);
}

TEST_F(ReplacedAggregate, GivesNoSnapshotOfAnotherStream) {
  Counter counter = counter_of(3);
  Counter other{Id<Counter>::from("2")};
  for (int i = 0; i < 3; ++i) other.add(100);
  const Subscription swapping = at_commit([&] { std::swap(counter, other); });
  counters.save(counter);

  EXPECT_EQ(standing(counter), "version 0, 3 unsaved, sum 300");
  EXPECT_EQ(snapshot_version(), 0);
  EXPECT_EQ(counters.load(id).state().sum, 3);
  counters.save(counter);
  EXPECT_EQ(counters.load(Id<Counter>::from("2")).state().sum, 300);
}

TEST_F(ReplacedAggregate, IsNotTakenForACopyThatRecordedSomethingElse) {
  Counter copy = counter_of(0);
  Counter counter = copy;
  counter.add(1);
  copy.add(50);
  const Subscription assigning = at_commit([&] { counter = copy; });
  counters.save(counter);

  EXPECT_EQ(standing(counter), "version 0, 1 unsaved, sum 50");
  EXPECT_THROW(counters.save(counter), ConcurrencyConflict);
}

TEST_F(ReplacedAggregate, IsLeftAsItIsIfTheListenerSavedItUnderTheSameId) {
  Counter counter = counter_of(1);
  const Subscription saving = at_commit([&] {
    EXPECT_TRUE(counters.save(counter, {.append_id = "add-1"}).repeated);
    counter.add(50);
  });
  counters.save(counter, {.append_id = "add-1"});

  EXPECT_EQ(standing(counter), "version 1, 1 unsaved, sum 51");
}

TEST_F(ReplacedAggregate, IsStillItselfIfTheListenerFailedToSaveIt) {
  Counter counter = counter_of(1);
  const Subscription saving =
      at_commit([&] { EXPECT_THROW(counters.save(counter), ConcurrencyConflict); });
  counters.save(counter);

  EXPECT_EQ(standing(counter), "version 1, 0 unsaved, sum 1");
}

TEST_F(ReplacedAggregate, OfAUnitIsTheOneTheListenerLoaded) {
  UnitOfWork unit{store};
  Counter& counter = unit.add(counter_of(3));
  const Subscription loading = at_commit([&] {
    counter = counters.load(id);
    counter.add(50);
  });
  unit.commit();

  EXPECT_EQ(standing(counter), "version 3, 1 unsaved, sum 53");
  EXPECT_EQ(counters.load(id).state().sum, 3);
}

}  // namespace
}  // namespace stela::replaced_aggregate_test
