// Somebody else holds a lock for long: a writer, a stopped process, a reader.
#include "faults/evidence.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace stela::lock_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::append;
using ::testing::HasSubstr;

/// What a process that holds a lock has in common with the test.
struct Hold {
  std::atomic<bool> begin{false};
  std::atomic<bool> held{false};
  std::atomic<bool> release{false};

  /// In the holder: before the lock, and with it.
  void until_begun() {
    test::eventually([&] { return begin.load(); });
  }
  void until_released() {
    held = true;
    test::eventually([&] { return release.load(); });
  }
  /// In the test: has the holder take the lock.
  bool takes_hold() {
    begin = true;
    return test::eventually([&] { return held.load(); });
  }
};

void hold_the_write_lock(const std::string& path, Hold& hold) {
  hold.until_begun();
  const int file = ::open((path + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || flock(file, LOCK_EX) != 0) throw std::runtime_error{"no lock to hold"};
  hold.until_released();
  close(file);
}

void hold_the_lock_of_sqlite(const std::string& path, Hold& hold) {
  hold.until_begun();
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  if (sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error{sqlite3_errmsg(database)};
  }
  hold.until_released();
  sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(database);
}

/// Whose lock it is, and what holds it.
struct Holder {
  const char* lock;
  void (*hold)(const std::string&, Hold&);

  friend void PrintTo(const Holder& holder, std::ostream* out) { *out << holder.lock; }
};

class LockHeldElsewhere : public ::testing::TestWithParam<Holder> {
 protected:
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  test::Process holder{[this] { GetParam().hold(path, *hold); }};
};

TEST_P(LockHeldElsewhere, CausesStoreBusyAfterTheTimeoutAndNotBefore) {
  constexpr milliseconds timeout{300};
  auto store = sqlite::open(path, {.busy_timeout = timeout});
  ASSERT_TRUE(hold->takes_hold());

  const auto begun = steady_clock::now();
  try {
    append(store, "order-1", "{}");
    ADD_FAILURE() << "appended under somebody else's lock";
  } catch (const StoreBusy& e) {
    EXPECT_TRUE(e.is_retryable());
    EXPECT_THAT(e.what(), HasSubstr("try again"));
    EXPECT_THAT(e.what(), HasSubstr("process " + std::to_string(holder.id()) + " (stela_"));
  }
  const auto waited = steady_clock::now() - begun;
  EXPECT_GE(waited, timeout);
  EXPECT_LT(waited, timeout + std::chrono::seconds{5});
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});

  holder.kill();
  EXPECT_EQ(append(store, "order-1", "{}").last, GlobalSequence{1});
}

TEST_P(LockHeldElsewhere, IsWaitedForWhenItIsReleasedInTime) {
  auto store = sqlite::open(path, {.busy_timeout = std::chrono::seconds{60}});
  ASSERT_TRUE(hold->takes_hold());

  auto appending = std::async(std::launch::async, [&] { return append(store, "order-1", "{}"); });
  EXPECT_EQ(appending.wait_for(milliseconds{100}), std::future_status::timeout);
  hold->release = true;

  EXPECT_EQ(appending.get().last, GlobalSequence{1});
  EXPECT_EQ(holder.wait(), 0);
}

TEST_P(LockHeldElsewhere, IsWaitedForHoweverLongTheTimeout) {
  auto store = sqlite::open(path, {.busy_timeout = milliseconds::max()});
  ASSERT_TRUE(hold->takes_hold());

  auto appending = std::async(std::launch::async, [&] { return append(store, "order-1", "{}"); });
  EXPECT_EQ(appending.wait_for(milliseconds{100}), std::future_status::timeout);
  hold->release = true;

  EXPECT_EQ(appending.get().last, GlobalSequence{1});
}

TEST_P(LockHeldElsewhere, IsToldToEveryThreadThatWaits) {
  constexpr milliseconds timeout{200};
  auto store = sqlite::open(path, {.busy_timeout = timeout});
  ASSERT_TRUE(hold->takes_hold());
  std::atomic<int> busy{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto begun = steady_clock::now();
        EXPECT_THROW(append(store, "order-1", "{}"), StoreBusy);
        // Who comes while a group waits is told with the next one.
        EXPECT_LT(steady_clock::now() - begun, 2 * timeout + std::chrono::seconds{5});
        ++busy;
      });
    }
  }
  EXPECT_EQ(busy, 8);

  holder.kill();
  EXPECT_EQ(append(store, "order-1", "{}").last, GlobalSequence{1});
}

TEST_P(LockHeldElsewhere, LetsOthersRead) {
  auto store = sqlite::open(path, {.busy_timeout = milliseconds{1}});
  ASSERT_TRUE(hold->takes_hold());
  EXPECT_TRUE(test::entries_of(store).empty());
}

TEST_P(LockHeldElsewhere, LetsOthersOpenAnExistingStore) {
  (void)sqlite::open(path);
  ASSERT_TRUE(hold->takes_hold());
  auto store = sqlite::open(path, {.busy_timeout = milliseconds{1}});
  EXPECT_TRUE(test::entries_of(store).empty());
  EXPECT_THROW(append(store, "order-1", "{}"), StoreBusy);
}

INSTANTIATE_TEST_SUITE_P(Locks, LockHeldElsewhere,
                         ::testing::Values(Holder{"OfStela", hold_the_write_lock},
                                           Holder{"OfSqlite", hold_the_lock_of_sqlite}),
                         ::testing::PrintToStringParamName());

TEST(LockHeldElsewhere, ByAStoppedProcessIsWaitedForUntilItContinues) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path);
  const test::Shared<Hold> hold;
  test::Process writer{[&] {
    auto other = sqlite::open(path);
    other.transact([&](Transaction& transaction) {
      append(transaction, "order-1", "{}");
      hold->until_released();
    });
  }};
  ASSERT_TRUE(hold->takes_hold());
  writer.stop();

  {
    auto store = sqlite::open(path, {.busy_timeout = milliseconds{50}});
    EXPECT_THROW(append(store, "order-1", "{}"), StoreBusy);
  }
  hold->release = true;
  writer.resume();
  EXPECT_EQ(writer.wait(), 0);
  auto after = sqlite::open(path);
  EXPECT_EQ(append(after, "order-1", "{}").last, GlobalSequence{2});
}

TEST(LockHeldElsewhere, ByAProcessThatWaitsIsBlamedOnTheOneThatItWaitsFor) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  const test::Shared<Hold> wait;
  test::Process holder{[&] { hold_the_lock_of_sqlite(path, *hold); }};
  test::Process waiter{[&] {
    wait->until_begun();
    auto other = sqlite::open(path, {.busy_timeout = std::chrono::seconds{60}});
    append(other, "order-1", "{}");
  }};
  auto store = sqlite::open(path, {.busy_timeout = milliseconds{50}});
  ASSERT_TRUE(hold->takes_hold());
  wait->begin = true;

  const std::string blame = "is held by process " + std::to_string(waiter.id()) + " (stela_";
  const std::string cause = "which waits for process " + std::to_string(holder.id()) + " (stela_";
  EXPECT_TRUE(test::eventually([&] {
    try {
      append(store, "order-1", "{}");
      return false;
    } catch (const StoreBusy& e) {
      const std::string text = e.what();
      return text.find(blame) < text.find(cause) && text.find(cause) != text.npos;
    }
  }));
  hold->release = true;
  EXPECT_EQ(waiter.wait(), 0);
}

// --- readers

/// A read transaction that stays open.
class LongReader {
 public:
  explicit LongReader(const std::string& path) {
    sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE, nullptr);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    run("BEGIN");
    run("SELECT count(*) FROM events");
  }
  ~LongReader() { close(); }
  LongReader(const LongReader&) = delete;
  LongReader& operator=(const LongReader&) = delete;

  void close() {
    sqlite3_close(database_);
    database_ = nullptr;
  }

 private:
  void run(const char* sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error{sqlite3_errmsg(database_)};
    }
  }

  sqlite3* database_ = nullptr;
};

class CountingLog final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    if (entry.name == "checkpoint.incomplete") ++incomplete;
  }
  std::atomic<int> incomplete{0};
};

void append_many(Store& store, int count) {
  for (int i = 0; i < count; ++i) append(store, "order-1", std::string(3000, 'x'));
}

TEST(LongReader, DelaysOnlyCheckpoints) {
  const test::TempDir dir;
  const std::string log_path = dir.file("shop.db-wal");
  CountingLog log;
  {
    auto store = sqlite::open(
        dir.file("shop.db"),
        {.durability = sqlite::Durability::relaxed, .checkpoint_pages = 40, .log = &log});
    append_many(store, 50);
    const auto small = fs::file_size(log_path);
    EXPECT_EQ(log.incomplete, 0);

    LongReader reader{dir.file("shop.db")};
    append_many(store, 500);
    const auto large = fs::file_size(log_path);
    EXPECT_GT(large, 5 * small);
    EXPECT_GE(log.incomplete, 1);
    // Each try holds everybody up for a moment: the log must grow by a quarter between two.
    EXPECT_LE(log.incomplete, 25);

    reader.close();
    const int incomplete = log.incomplete;
    append_many(store, 1000);
    constexpr std::uintmax_t limit = 4 * 40 * 4096;
    EXPECT_GT(large, limit);
    EXPECT_LE(fs::file_size(log_path), limit) << "what the log had grown to isn't given back";
    EXPECT_EQ(log.incomplete, incomplete);
    EXPECT_EQ(store.last_sequence(), GlobalSequence{1550});
  }
  EXPECT_EQ(fs::file_size(log_path), 0u);
  EXPECT_EQ(test::flaw_of(dir.file("shop.db")), "");
}

/// SQLite begins the log anew only at a moment at which nobody reads from it.
TEST(LongReader, IsNotASumOfShortOnes) {
  const test::TempDir dir;
  auto store = sqlite::open(dir.file("shop.db"),
                            {.durability = sqlite::Durability::relaxed, .checkpoint_pages = 50});
  append_many(store, 300);
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        while (!stop) {
          for (const StoredEvent& event : store.read_all({.limit = 200})) (void)event;
        }
      });
    }
    append_many(store, 1000);
    stop = true;
  }
  constexpr std::uintmax_t written = 1000 * 2 * 4096;
  EXPECT_LT(fs::file_size(dir.file("shop.db-wal")), written / 2);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1300});
}

}  // namespace
}  // namespace stela::lock_test
