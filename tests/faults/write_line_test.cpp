// Who gets the write lock next, when several processes want it.
#include "faults/evidence.hpp"
#include "sqlite/write_lock.hpp"
#include "support/fault_vfs.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::write_line_test {
namespace {

using namespace std::chrono_literals;
using test::append;
using ::testing::ElementsAre;

/// So long that whoever needs it was forgotten.
constexpr std::chrono::milliseconds far_away = 60s;

/// How many stand in line for the lock of a database.
class Line {
 public:
  explicit Line(const std::string& database)
      : file_{::open((database + "-lock").c_str(), O_RDWR | O_CLOEXEC)} {}
  ~Line() { close(file_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  int length() const { return length(0, std::numeric_limits<off_t>::max()); }
  bool grows_to(int count) const {
    return test::eventually([&] { return length() == count; });
  }

 private:
  int length(off_t from, off_t to) const {
    if (from >= to) return 0;
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = from;
    range.l_len = to - from;
    if (fcntl(file_, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return 0;
    return 1 + length(from, range.l_start) + length(range.l_start + range.l_len, to);
  }

  int file_;
};

class WriteLine : public ::testing::Test {
 protected:
  WriteLine() { (void)sqlite::open(path, {.durability = sqlite::Durability::relaxed}); }

  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
};

TEST_F(WriteLine, ServesWritersInOrderOfArrival) {
  sqlite::WriteLock busy{path};
  busy.lock(far_away);
  const Line line{path};
  std::vector<int> served;
  {
    std::vector<std::jthread> waiting;
    for (int i = 1; i <= 3; ++i) {
      waiting.emplace_back([&, i] {
        sqlite::WriteLock lock{path};
        const sqlite::WriteLockGuard guard{lock, far_away};
        served.push_back(i);
      });
      ASSERT_TRUE(line.grows_to(i));
    }
    // Like a process that has the next group ready.
    busy.unlock();
    const sqlite::WriteLockGuard again{busy, far_away};
    served.push_back(0);
  }
  EXPECT_THAT(served, ElementsAre(1, 2, 3, 0));
}

TEST_F(WriteLine, PassesOverAProcessThatIsStopped) {
  sqlite::WriteLock busy{path};
  busy.lock(far_away);
  const Line line{path};
  test::Process stopped{[&] {
    sqlite::WriteLock lock{path};
    lock.lock(far_away);
  }};
  ASSERT_TRUE(line.grows_to(1));
  stopped.stop();
  busy.unlock();

  for (int i = 0; i < 3; ++i) {
    EXPECT_NO_THROW(busy.lock(far_away));
    busy.unlock();
  }
  stopped.resume();
  EXPECT_EQ(stopped.wait(), 0);
}

TEST_F(WriteLine, ForgetsAProcessThatDied) {
  sqlite::WriteLock busy{path};
  busy.lock(far_away);
  const Line line{path};
  test::Process dying{[&] {
    sqlite::WriteLock lock{path};
    lock.lock(far_away);
  }};
  ASSERT_TRUE(line.grows_to(1));
  dying.kill();
  EXPECT_TRUE(line.grows_to(0));
  busy.unlock();
  EXPECT_NO_THROW(busy.lock(0ms));
}

/// A disk that takes longer for one sync than a thread in line has patience with its own process.
class StalledSync final : public test::FileWatcher {
 public:
  /// The next sync calls `meanwhile` first, and ends early when `is_over`.
  void stall(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation != test::FileOperation::sync || !meanwhile_) return test::Verdict::proceed;
    std::exchange(meanwhile_, nullptr)();
    test::eventually([&] { return is_over.load(); }, 1600ms);
    return test::Verdict::proceed;
  }

  std::atomic<bool> is_over{false};

 private:
  std::function<void()> meanwhile_;
};

/// What an append on another thread ends with, while `work` waits for such a disk.
template <class Work>
std::string end_of_an_append_during(Work work) {
  const test::TempDir dir = test::TempDir::in_memory();
  StalledSync disk;
  const test::FaultVfs vfs{disk};
  auto store = sqlite::open(dir.file("shop.db"), {.busy_timeout = 50ms, .vfs = vfs.name()});
  append(store, "order-1", "{}");
  std::string end = "stored";
  std::jthread appender;
  disk.stall([&] {
    appender = std::jthread{[&] {
      try {
        append(store, "order-2", "{}");
      } catch (const StoreBusy& e) {
        end = e.what();
      }
      disk.is_over = true;
    }};
  });
  work(store);
  appender.join();
  return end;
}

TEST(StalledDisk, LetsAnAppendWaitForTheCommitOfATransaction) {
  const auto transact = [](Store& store) {
    store.transact([](Transaction& transaction) { append(transaction, "order-1", "{}"); });
  };
  EXPECT_EQ(end_of_an_append_during(transact), "stored");
}

TEST(StalledDisk, LetsAnAppendWaitForACheckpoint) {
  EXPECT_EQ(end_of_an_append_during([](Store& store) { sqlite::checkpoint(store); }), "stored");
}

struct Traffic {
  std::atomic<std::int64_t> groups{0};
  /// Whether another process is about to write.
  std::atomic<bool> is_awaited{false};
  std::atomic<bool> stop{false};
};

/// A disk that syncs the log, which each group does once, no sooner than another process has come
/// to stand in line.
class SlowSync final : public test::FileWatcher {
 public:
  SlowSync(const std::string& path, Traffic& traffic) : line_{path}, traffic_{traffic} {}
  test::Verdict before(const test::FileCall& call) noexcept override {
    if (call.operation == test::FileOperation::sync && call.file == test::FileKind::wal) {
      ++traffic_.groups;
      if (traffic_.is_awaited) {
        test::eventually([this] { return line_.length() > 0 || traffic_.stop; });
      }
    }
    return test::Verdict::proceed;
  }

 private:
  Line line_;
  Traffic& traffic_;
};

void keep_busy(const std::string& path, Traffic& traffic) {
  SlowSync slow{path, traffic};
  const test::FaultVfs vfs{slow};
  auto store = sqlite::open(path, {.busy_timeout = far_away, .vfs = vfs.name()});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      while (!traffic.stop) append(store, "order-" + std::to_string(i), "{}");
    });
  }
}

TEST(WriteLineOfABusyProcess, AdmitsAnotherProcessWithinTenGroups) {
  constexpr std::size_t appends = 300;
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path);
  const test::Shared<Traffic> traffic;
  test::Process busy{[&] { keep_busy(path, *traffic); }};
  ASSERT_TRUE(test::eventually([&] { return traffic->groups > 3; }));

  auto store = sqlite::open(path, {.busy_timeout = far_away});
  std::vector<std::int64_t> waited;
  std::int64_t before = traffic->groups;
  traffic->is_awaited = true;
  for (std::size_t i = 0; i < appends; ++i) {
    // A group that holds the lock, and keeps it until this process stands in line.
    ASSERT_TRUE(test::eventually([&] { return traffic->groups > before; }));
    before = traffic->groups;
    append(store, "order-1", "{}");
    waited.push_back(traffic->groups - before);
  }
  traffic->stop = true;
  EXPECT_EQ(busy.wait(), 0);

  std::sort(waited.begin(), waited.end());
  std::cout << "groups waited for: median " << waited[appends / 2] << ", worst " << waited.back()
            << '\n';
  EXPECT_LE(waited[appends * 99 / 100], 10)
      << "median " << waited[appends / 2] << ", worst " << waited.back();
}

}  // namespace
}  // namespace stela::write_line_test
