// A commit that fails after it was written whole: what it means, and how it is settled.
#include "faults/trial.hpp"
#include "support/orders.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stela::commit_in_doubt_test {
namespace {

using test::append;
using test::FileOperation;
using test::Order;
using test::Trial;
using test::Verdict;
using ::testing::HasSubstr;

test::FailNth::Plan failing_sync(bool for_ever) {
  return {{FileOperation::sync}, Verdict::io_error, 1, for_ever};
}

template <class Call>
std::string what_comes_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string{to_string(e.code())} + ": " + e.what();
  }
  return "done";
}

TEST(CommitInDoubt, IsCommittedIfItsFramesAreReadAgain) {
  Trial trial{failing_sync(true)};
  {
    auto store = trial.open_healthy({});
    trial.arm();
    EXPECT_EQ(trial.append(store, Trial::one_event("order-1")), ErrorCode::commit_in_doubt);
    EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
  }
  EXPECT_EQ(trial.verdict(), "");
  EXPECT_EQ(trial.doubts_that_stand(), 1);
}

TEST(CommitInDoubt, FallsIfTheStoreCouldStillTidyUp) {
  Trial trial{failing_sync(false)};
  {
    auto store = trial.open_healthy({});
    trial.arm();
    EXPECT_EQ(trial.append(store, Trial::one_event("order-1")), ErrorCode::commit_in_doubt);
  }
  EXPECT_EQ(trial.verdict(), "");
  EXPECT_EQ(trial.doubts_that_fell(), 1);
}

TEST(CommitInDoubt, FallsForGoodWhenAnotherStoreCommits) {
  Trial trial{failing_sync(true)};
  {
    auto store = trial.open_healthy({});
    auto other = sqlite::open(trial.path());
    trial.arm();
    EXPECT_EQ(trial.append(store, Trial::events("order-1", 3)), ErrorCode::commit_in_doubt);
    EXPECT_EQ(trial.append(other, Trial::one_event("order-2")), std::nullopt);
  }
  EXPECT_EQ(trial.verdict(), "");
  EXPECT_EQ(trial.doubts_that_fell(), 1);
}

TEST(CommitInDoubt, IsSettledByAppendingAgainUnderItsId) {
  Trial trial{failing_sync(true)};
  const StreamId stream = StreamId::parse("order-1");
  const std::vector<test::PlainAppend> appends{{stream, ExpectedVersion::none(), {"{}", "{}"}}};
  {
    auto store = trial.open_healthy({});
    trial.arm();
    EXPECT_THROW(append(store, appends, "command-7"), CommitInDoubt);
  }
  trial.heal();

  auto store = sqlite::open(trial.path());
  const AppendResult again = append(store, appends, "command-7");

  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, GlobalSequence{1});
  EXPECT_EQ(again.last, GlobalSequence{2});
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST(CommitInDoubt, StopsTheStoreFromWritingUntilItIsReopened) {
  Trial trial{failing_sync(false)};
  auto store = trial.open_healthy({});
  append(store, "order-1", "{}");
  trial.arm();
  EXPECT_EQ(trial.append(store, Trial::one_event("order-1")), ErrorCode::commit_in_doubt);
  EXPECT_THAT(trial.last_error(),
              HasSubstr("reopen the store and append again under the same append_id; without one, "
                        "read the stream first"));

  const StreamId stream = StreamId::parse("order-1");
  const auto refusal = HasSubstr("store_failed: an earlier commit is in doubt");
  EXPECT_THAT(what_comes_of([&] { append(store, "order-2", "{}"); }), refusal);
  EXPECT_THAT(what_comes_of([&] { store.transact([](Transaction&) {}); }), refusal);
  EXPECT_THAT(what_comes_of([&] { store.drop_snapshot(stream); }), refusal);
  EXPECT_EQ(test::entries_of(store).size(), 1u);
}

TEST(CommitInDoubt, IsToldToEveryMemberOfTheGroup) {
  Trial trial{{{FileOperation::sync}, Verdict::io_error, 1, true}};
  auto store = trial.open_healthy({});
  std::atomic<int> told{0};
  trial.arm();
  // Whoever comes after the group that failed is told that the store must be reopened.
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> members;
    for (int i = 0; i < 8; ++i) {
      members.emplace_back([&] {
        const auto end = trial.append(store, Trial::one_event("order-1"));
        if (end == ErrorCode::commit_in_doubt) ++told;
        if (end == ErrorCode::store_failed) ++refused;
      });
    }
  }
  EXPECT_GE(told, 1);
  EXPECT_EQ(told + refused, 8);
}

/// The index of the log grows with each 4,096 frames, after they were written.
TEST(CommitInDoubt, FollowsAnIndexThatCannotGrow) {
  Trial trial{{{FileOperation::shm_map}, Verdict::disk_full, 1, true}};
  {
    auto store = trial.open_healthy({});
    trial.arm();
    EXPECT_EQ(trial.append(store, Trial::events("order-1", 90, 200'000)),
              ErrorCode::commit_in_doubt);
  }
  EXPECT_EQ(trial.verdict(), "");
  EXPECT_EQ(trial.doubts_that_fell(), 1);
}

TEST(CommitInDoubt, LetsAnAggregateBeSavedAgainOnlyUnderItsId) {
  Trial trial{failing_sync(true)};
  Order order = Order::place(Id<Order>::from("7"), "jane", 100);
  {
    auto store = trial.open_healthy({});
    trial.arm();
    EXPECT_THROW(Repository<Order>{store}.save(order, {.append_id = "place-7"}), CommitInDoubt);
    const auto refusal = HasSubstr("usage: 'order-7' was saved by a commit that is in doubt");
    EXPECT_THAT(what_comes_of([&] { (void)order.version(); }), refusal);
    EXPECT_THAT(what_comes_of([&] { (void)order.state(); }), refusal);
    EXPECT_THAT(what_comes_of([&] { order.note("x"); }), refusal);
  }
  trial.heal();

  auto store = sqlite::open(trial.path());
  EXPECT_THROW(Repository<Order>{store}.save(order), UsageError);
  EXPECT_TRUE(Repository<Order>{store}.save(order, {.append_id = "place-7"}).repeated);
  EXPECT_EQ(order.version(), StreamVersion{1});
  EXPECT_TRUE(order.changes().empty());
}

TEST(CommitInDoubt, MakesAggregatesOfItsTransactionUnusable) {
  Trial trial{failing_sync(true)};
  Order order = Order::place(Id<Order>::from("7"), "jane", 100);
  std::optional<Order> loaded;
  auto store = trial.open_healthy({});
  trial.arm();
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    Repository<Order> orders{transaction};
    orders.save(order);
    loaded = orders.load(Id<Order>::from("7"));
  }),
               CommitInDoubt);

  const auto refusal = HasSubstr("usage: 'order-7' was saved by a commit that is in doubt");
  EXPECT_THAT(what_comes_of([&] { (void)order.state(); }), refusal);
  EXPECT_THAT(what_comes_of([&] { order.note("x"); }), refusal);
  EXPECT_THAT(what_comes_of([&] { (void)loaded->version(); }), refusal);
}

TEST(CommitInDoubt, MakesAggregatesOfItsUnitUnusable) {
  Trial trial{failing_sync(true)};
  auto store = trial.open_healthy({});
  UnitOfWork unit{store};
  const Order& order = unit.add(Order::place(Id<Order>::from("7"), "jane", 100));
  trial.arm();

  EXPECT_THROW(unit.commit(), CommitInDoubt);
  EXPECT_THAT(what_comes_of([&] { (void)order.version(); }), HasSubstr("in doubt; load it again"));
}

}  // namespace
}  // namespace stela::commit_in_doubt_test
