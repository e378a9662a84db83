#include "support/counters.hpp"
#include "support/messages.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace stela::snapshot_test {
namespace {

using test::DemandCounter;
using test::message_of;
using test::SnapshotCounter;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Snapshot : public ::testing::Test {
 protected:
  static const StreamId& stream() {
    static const StreamId id = StreamId::parse("counter-1");
    return id;
  }
  template <class A>
  A load(const Moment& moment = {}) {
    return Repository<A>{store}.load(Id<A>::of(stream()), moment);
  }
  /// `count` events of amount 1, in saves of `at_once`.
  template <class A>
  A keep(int count, int at_once = 1) {
    Repository<A> counters{store};
    A counter = counters.find(Id<A>::of(stream())).value_or(A{stream()});
    for (int i = 0; i < count; i += at_once) {
      for (int j = 0; j < at_once; ++j) counter.add(1);
      counters.save(counter);
    }
    return counter;
  }
  std::int64_t snapshot_version() {
    const auto found = store.find_snapshot(stream(), StreamVersion::max(), GlobalSequence::max());
    return found ? found->version.value() : 0;
  }
  void plant(std::int64_t version, std::int64_t sequence, int layout, std::string payload) {
    store.save_snapshot(
        stream(), {StreamVersion{version}, GlobalSequence{sequence}, layout, std::move(payload)});
  }

  test::RecordingLog log;
  testing::MemoryStore store{{.log = &log}};
};

TEST_F(Snapshot, IsTakenEveryFewEventsAndUsed) {
  keep<SnapshotCounter<3>>(7);

  EXPECT_EQ(snapshot_version(), 6);
  const auto loaded = load<SnapshotCounter<3>>();
  EXPECT_EQ(loaded.version(), StreamVersion{7});
  EXPECT_EQ(loaded.state().sum, 7);
  EXPECT_EQ(loaded.state().applied, 1);
}

TEST_F(Snapshot, IsTakenAfterASaveThatPassesItsNumber) {
  keep<SnapshotCounter<3>>(8, 4);

  EXPECT_EQ(snapshot_version(), 8);
}

TEST_F(Snapshot, IsTakenByALoadThatHadToReadMuch) {
  keep<DemandCounter>(5);
  EXPECT_EQ(snapshot_version(), 0);

  EXPECT_EQ(load<SnapshotCounter<3>>().state().sum, 5);

  EXPECT_EQ(snapshot_version(), 5);
  EXPECT_EQ(load<SnapshotCounter<3>>().state().applied, 0);
}

TEST_F(Snapshot, IsTakenOnDemand) {
  DemandCounter counter = keep<DemandCounter>(4);
  Repository<DemandCounter> counters{store};
  counters.snapshot(counter);

  EXPECT_EQ(snapshot_version(), 4);
  EXPECT_EQ(load<DemandCounter>().state().applied, 0);
  counter.add(1);
  EXPECT_THAT(message_of<UsageError>([&] { counters.snapshot(counter); }),
              HasSubstr("unsaved changes"));
  const DemandCounter past = load<DemandCounter>(at_version(StreamVersion{2}));
  EXPECT_THAT(message_of<UsageError>([&] { counters.snapshot(past); }),
              HasSubstr("earlier moment"));
}

TEST_F(Snapshot, OfAnotherLayoutIsLeftAlone) {
  keep<SnapshotCounter<3, 1>>(4);

  const auto loaded = load<SnapshotCounter<9, 2>>();

  EXPECT_EQ(loaded.state().sum, 4);
  EXPECT_EQ(loaded.state().applied, 4);
  EXPECT_EQ(snapshot_version(), 3);
  EXPECT_THAT(log.entries(), IsEmpty());
}

TEST_F(Snapshot, OfAnotherLayoutIsReplacedWhenOneIsDue) {
  keep<SnapshotCounter<3, 1>>(4);
  (void)load<SnapshotCounter<3, 2>>();

  EXPECT_EQ(snapshot_version(), 4);
  EXPECT_EQ((load<SnapshotCounter<3, 2>>().state().applied), 0);
}

TEST_F(Snapshot, IsNeverNewerThanTheRequestedVersion) {
  keep<SnapshotCounter<3>>(7);

  for (int version = 1; version <= 7; ++version) {
    const auto past = load<SnapshotCounter<3>>(at_version(StreamVersion{version}));
    EXPECT_EQ(past.state().sum, version);
    EXPECT_EQ(load<SnapshotCounter<3>>(at_sequence(GlobalSequence{version})).state().sum, version);
  }
  EXPECT_EQ(load<SnapshotCounter<3>>(as_of(system_clock().now())).state().sum, 7);
}

TEST_F(Snapshot, IsNotTakenOfThePast) {
  keep<DemandCounter>(7);
  (void)load<SnapshotCounter<3>>(at_version(StreamVersion{5}));

  EXPECT_EQ(snapshot_version(), 0);
}

TEST_F(Snapshot, ThatDoesNotDecodeIsDroppedLoggedAndRebuilt) {
  keep<DemandCounter>(4);
  plant(4, 4, 1, R"({"sum":"many"})");

  const auto loaded = load<SnapshotCounter<3>>();

  EXPECT_EQ(loaded.state().sum, 4);
  EXPECT_EQ(loaded.state().applied, 4);
  EXPECT_THAT(log.entries(),
              ElementsAre(AllOf(HasSubstr("warning snapshot.discarded"),
                                HasSubstr("stream=counter-1 version=4"), HasSubstr("sum"))));
  EXPECT_EQ(load<SnapshotCounter<3>>().state().applied, 0);
}

TEST_F(Snapshot, OfAnotherStreamOrOfTheFutureIsDropped) {
  keep<DemandCounter>(4);
  const auto expect_dropped = [&](std::int64_t version, std::int64_t sequence) {
    plant(version, sequence, 1, R"({"sum":100})");
    EXPECT_EQ(load<DemandCounter>().state().sum, 4) << version << ' ' << sequence;
    EXPECT_EQ(snapshot_version(), 0) << version << ' ' << sequence;
  };

  expect_dropped(4, 3);
  expect_dropped(9, 9);
  EXPECT_THAT(log.entries(), Each(HasSubstr("isn't of this stream")));
}

/// Adds to an aggregate once, at the next commit.
Subscription add_at_commit(EventStore& store, SnapshotCounter<2>& counter) {
  return store.on_commit([&counter, added = false](const CommitNotice&) mutable {
    if (!std::exchange(added, true)) counter.add(100);
  });
}

TEST_F(Snapshot, IsNotTakenOfUnsavedState) {
  SnapshotCounter<2> counter{stream()};
  counter.add(1);
  counter.add(1);
  const Subscription adding = add_at_commit(store, counter);
  Repository<SnapshotCounter<2>>{store}.save(counter);

  EXPECT_EQ(snapshot_version(), 0);
  EXPECT_EQ(load<SnapshotCounter<2>>().state().sum, 2);
}

TEST_F(Snapshot, OfAUnitOmitsEventsThatAListenerAdds) {
  UnitOfWork unit{store};
  auto& counter = unit.add(SnapshotCounter<2>{stream()});
  counter.add(1);
  counter.add(1);
  const Subscription adding = add_at_commit(store, counter);
  unit.commit();

  EXPECT_EQ(snapshot_version(), 2);
  EXPECT_EQ(load<SnapshotCounter<2>>().state().sum, 2);
}

TEST_F(Snapshot, InATransactionIsWrittenAfterIt) {
  using Counter = SnapshotCounter<2>;
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    Counter counter{stream()};
    counter.add(1);
    counter.add(1);
    Repository<Counter>{transaction}.save(counter);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_EQ(snapshot_version(), 0);

  store.transact([&](Transaction& transaction) {
    Counter counter{stream()};
    counter.add(1);
    counter.add(1);
    Repository<Counter>{transaction}.save(counter);
  });
  EXPECT_EQ(snapshot_version(), 2);
}

}  // namespace
}  // namespace stela::snapshot_test
