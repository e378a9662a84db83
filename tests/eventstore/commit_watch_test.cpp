// Whoever sleeps until something is committed wakes: at commits of this process, and of others.
#include "sqlite/commit_watch.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace stela {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// So late that whoever needs it has missed the commit.
constexpr auto far_away = 60s;

/// A disk that takes long to sync the log: for so long a commit is written, and can't be seen.
struct SlowSync final : test::FileWatcher {
  explicit SlowSync(std::chrono::milliseconds time = 100ms) : time_{time} {}
  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation == test::FileOperation::sync && call.file == test::FileKind::wal) {
      std::this_thread::sleep_for(time_);
    }
    return test::Verdict::proceed;
  }

 private:
  const std::chrono::milliseconds time_;
};

class CommitWatchTest : public ::testing::Test {
 protected:
  /// False if the deadline passed before `count` events could be seen.
  bool sees(std::int64_t count) {
    const auto deadline = steady_clock::now() + far_away;
    while (store->last_sequence() < GlobalSequence{count}) {
      watch.wait_until(deadline);
      if (steady_clock::now() >= deadline) return false;
    }
    return true;
  }

  const test::TempDir dir;
  const std::unique_ptr<sqlite::Store> store = test::open_store(dir.file("shop.db"));
  sqlite::CommitWatch watch{*store};
};

TEST_F(CommitWatchTest, WakesAtACommitOfItsOwnStore) {
  const std::jthread appending{[&] { test::append(*store, "order-1"); }};
  EXPECT_TRUE(sees(1));
}

TEST_F(CommitWatchTest, WakesAtACommitThatTheDiskIsSlowToSync) {
  SlowSync slow;
  const test::FaultVfs vfs{slow};
  const auto other = test::open_store(dir.file("shop.db"), {.vfs = vfs.name()});
  for (int i = 1; i <= 3; ++i) {
    const std::jthread appending{[&] { test::append(*other, "order-1"); }};
    EXPECT_TRUE(sees(i));
  }
}

TEST_F(CommitWatchTest, LooksForACommitHoweverLongTheDiskTakes) {
  SlowSync slow{1'500ms};
  const test::FaultVfs vfs{slow};
  const auto other = test::open_store(dir.file("shop.db"), {.vfs = vfs.name()});
  const std::jthread appending{[&] { test::append(*other, "order-1"); }};
  EXPECT_TRUE(sees(1));
}

TEST_F(CommitWatchTest, TakesACommitOfItsOwnForNobodyElses) {
  SlowSync slow;
  const test::FaultVfs vfs{slow};
  const auto other = test::open_store(dir.file("shop.db"), {.vfs = vfs.name()});
  test::append(*store, "order-1");
  const std::jthread appending{[&] { test::append(*other, "order-2"); }};
  EXPECT_TRUE(sees(2));
}

}  // namespace
}  // namespace stela
