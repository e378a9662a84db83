// A commit that fails after it was written whole: what it means, and how it is settled.
#include "faults/trial.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace stela {
namespace {

using test::append;
using test::FileOperation;
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

TEST(CommitInDoubt, StandsIfItsFramesAreReadAgain) {
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
  EXPECT_THAT(trial.last_error(), HasSubstr("append again under the same append_id"));

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
TEST(CommitInDoubt, IsWhatAnIndexThatCannotGrowLeaves) {
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

}  // namespace
}  // namespace stela
