// Whoever sleeps until something is committed wakes: at commits of this process, and of others.
#include "database/database.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

namespace stela::commit_watch_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// So late that whoever needs it has missed the commit.
constexpr auto far_away = 60s;

/// Counts how often somebody looks into a database: each look locks the log's shared memory.
class Looks final : public test::FileWatcher {
 public:
  int count() const { return count_; }
  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation == test::FileOperation::shm_lock && !call.releases()) ++count_;
    return test::Verdict::proceed;
  }

 private:
  std::atomic<int> count_{0};
};

/// A disk that syncs the log no sooner than somebody has looked so often: for so long a commit is
/// written, and can't be seen.
class SlowSync final : public test::FileWatcher {
 public:
  SlowSync(const Looks& looks, int wanted) : looks_{looks}, wanted_{wanted} {}
  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation == test::FileOperation::sync && call.file == test::FileKind::wal) {
      begun_.test_and_set();
      begun_.notify_all();
      const int enough = looks_.count() + wanted_;
      test::eventually([&] { return mended_ || looks_.count() >= enough; }, far_away);
    }
    return test::Verdict::proceed;
  }
  /// Returns when something was written to the log, and isn't synced yet.
  void wait_until_written() const { begun_.wait(false); }
  void mend() { mended_ = true; }

 private:
  const Looks& looks_;
  const int wanted_;
  std::atomic_flag begun_;
  std::atomic<bool> mended_{false};
};

/// A store on such a disk.
class SlowStore {
 public:
  SlowStore(const std::string& path, const Looks& looks, int wanted = 10)
      : disk_{looks, wanted}, store_{test::open_store(path, {.vfs = vfs_.name()})} {}
  /// Closing it syncs, too.
  ~SlowStore() { disk_.mend(); }
  SlowStore(const SlowStore&) = delete;
  SlowStore& operator=(const SlowStore&) = delete;

  std::jthread append(const std::string& stream) {
    return std::jthread{[this, stream] { test::append(*store_, stream); }};
  }
  void wait_until_written() const { disk_.wait_until_written(); }

 private:
  SlowSync disk_;
  const test::FaultVfs vfs_{disk_};
  const std::unique_ptr<Store> store_;
};

/// How many descriptors this process may have open, for as long as it lives.
class FileLimit {
 public:
  FileLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

  void set(rlim_t count) const {
    const rlimit limit{count, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }

 private:
  rlimit before_{};
};

/// How many files this process is having watched.
std::size_t open_watches() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (read_symlink(entry.path(), gone) == "anon_inode:inotify") ++count;
  }
  return count;
}

class CommitWatchTest : public ::testing::Test {
 protected:
  /// False if the deadline passed before `count` events could be seen.
  bool sees(std::int64_t count) { return sees(count, *watch); }
  bool sees(std::int64_t count, database::CommitWatch& with) const {
    const auto deadline = steady_clock::now() + far_away;
    while (store->last_sequence() < GlobalSequence{count}) {
      with.wait_until(deadline);
      if (steady_clock::now() >= deadline) return false;
    }
    return true;
  }

  const test::TempDir dir;
  Looks looks;
  const test::FaultVfs vfs{looks};
  const std::unique_ptr<Store> store = test::open_store(dir.file("shop.db"), {.vfs = vfs.name()});
  const std::unique_ptr<database::CommitWatch> watch = store->database().watch_commits();
};

TEST_F(CommitWatchTest, WakesAtACommitOfItsOwnStore) {
  const std::jthread appending{[&] { test::append(*store, "order-1"); }};
  EXPECT_TRUE(sees(1));
}

TEST_F(CommitWatchTest, WakesAtACommitThatTheDiskIsSlowToSync) {
  SlowStore slow{dir.file("shop.db"), looks};
  for (int i = 1; i <= 3; ++i) {
    const std::jthread appending = slow.append("order-1");
    EXPECT_TRUE(sees(i));
  }
}

TEST_F(CommitWatchTest, LooksForACommitThatWasWrittenBeforeItEverSlept) {
  SlowStore slow{dir.file("shop.db"), looks};
  const std::jthread appending = slow.append("order-1");
  slow.wait_until_written();
  EXPECT_TRUE(sees(1));
}

TEST_F(CommitWatchTest, LooksForCommitsWhereNoWatchIsLeft) {
  const std::size_t watches = open_watches();
  std::unique_ptr<database::CommitWatch> unwatched;
  {
    // With ever more descriptors: the first number that is enough leaves none for the watch.
    FileLimit limit;
    for (rlim_t count = 0; !unwatched; ++count) {
      limit.set(count);
      try {
        unwatched = store->database().watch_commits();
      } catch (const Error&) {
      }
    }
  }
  ASSERT_EQ(open_watches(), watches);
  const auto other = test::open_store(dir.file("shop.db"));
  const std::jthread appending{[&] { test::append(*other, "order-1"); }};
  EXPECT_TRUE(sees(1, *unwatched));
}

TEST_F(CommitWatchTest, LooksForACommitHoweverLongTheDiskTakes) {
  SlowStore slow{dir.file("shop.db"), looks, 22};
  const std::jthread appending = slow.append("order-1");
  EXPECT_TRUE(sees(1));
}

TEST_F(CommitWatchTest, SeesAForeignCommitAfterOneOfItsOwn) {
  SlowStore slow{dir.file("shop.db"), looks};
  test::append(*store, "order-1");
  const std::jthread appending = slow.append("order-2");
  EXPECT_TRUE(sees(2));
}

}  // namespace
}  // namespace stela::commit_watch_test
