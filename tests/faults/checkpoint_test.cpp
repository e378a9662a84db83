// Several processes append with a checkpoint due every few pages, and are killed now and then.
#include "faults/checkpoint_witness.hpp"
#include "faults/evidence.hpp"
#include "faults/settings.hpp"
#include "faults/writing_process.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace stela::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

/// How many writes and checkpoints are seen at least, however slow the machine is; and when that is
/// given up.
constexpr std::int64_t enough = 100;
constexpr std::chrono::seconds patience{200};

/// A process that appends with a checkpoint every few pages, under the eyes of a witness.
class WatchedWriter {
 public:
  WatchedWriter(const test::TempDir& dir, test::Testimony& testimony, std::uint64_t seed, int run)
      : run_{run}, child_{[&, seed, run] {
          test::CheckpointWitness witness{dir.file("marks"), testimony};
          write_until_stopped({.path = dir.file("shop.db"),
                               .checkpoint_pages = 4,
                               .seed = seed,
                               .run = run,
                               .watcher = &witness},
                              *state_, pipe_);
        }} {}

  void collect() { promised_ += pipe_.read_available(); }
  test::Attempts promises() {
    collect();
    return test::parse_promises(run_, promised_);
  }
  /// How many bytes say what it was promised.
  std::size_t promised() const { return promised_.size(); }
  void kill() { child_.kill(); }
  bool is_running() { return child_.is_running(); }
  int stop() {
    state_->stop = true;
    // A full pipe would keep it from ever seeing that.
    test::eventually([this] {
      collect();
      return !child_.is_running();
    });
    return child_.wait();
  }

 private:
  int run_;
  test::Shared<test::WritingState> state_;
  test::Pipe pipe_;
  std::string promised_;
  test::Process child_;
};

TEST(Checkpoints, NeverRunDuringAWrite) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path);
  const std::uint64_t seed = test::seed_of_test();
  test::Dice dice{seed};
  const test::Shared<test::Testimony> testimony;
  test::Attempts promised;
  std::vector<std::unique_ptr<WatchedWriter>> writers;
  int runs = 0;
  int kills = 0;
  std::uintmax_t largest_log = 0;
  const auto start_one = [&] {
    writers.push_back(std::make_unique<WatchedWriter>(dir, *testimony, seed, ++runs));
  };
  const auto end =
      steady_clock::now() + std::chrono::seconds{test::setting("STELA_FAULTS_SECONDS", 20)};

  const auto has_enough = [&] {
    return testimony->writes > enough && testimony->checkpoints > enough;
  };

  for (int i = 0; i < 3; ++i) start_one();
  for (auto now = steady_clock::now(); now < end || (!has_enough() && now < end + patience);
       now = steady_clock::now()) {
    const auto victim = writers.begin() + static_cast<std::ptrdiff_t>(dice.below(3));
    const std::size_t last_words =
        (*victim)->promised() + static_cast<std::size_t>(dice.between(1, 700));
    ASSERT_TRUE(test::eventually([&] {
      for (const auto& writer : writers) writer->collect();
      return (*victim)->promised() >= last_words;
    }));
    largest_log = std::max(largest_log, fs::file_size(path + "-wal"));
    ASSERT_TRUE((*victim)->is_running());
    (*victim)->kill();
    promised.merge((*victim)->promises());
    writers.erase(victim);
    ++kills;
    start_one();
  }
  for (const auto& writer : writers) {
    EXPECT_EQ(writer->stop(), 0);
    promised.merge(writer->promises());
  }

  std::cout << testimony->writes << " writes, " << testimony->checkpoints << " checkpoints, "
            << kills << " kills, " << promised.size() << " acknowledged appends, largest log "
            << largest_log / 1024 << " KiB\n";
  EXPECT_EQ(testimony->overlaps, 0);
  EXPECT_EQ(testimony->unseen, 0);
  EXPECT_GT(testimony->writes, enough);
  EXPECT_GT(testimony->checkpoints, enough);
  EXPECT_EQ(test::flaw_of(path), "");
  auto store = sqlite::open(path);
  test::Attempts found;
  EXPECT_EQ(test::find_attempts(seed, test::entries_of(store), 0, found), "");
  EXPECT_EQ(test::missing_promise(promised, found), "");
}

/// Anybody's connection with SQLite's own checkpoints, which don't ask for Stela's lock.
void write_as_an_outsider(const std::string& path, const std::string& vfs) {
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, vfs.c_str());
  sqlite3_busy_timeout(database, 10'000);
  sqlite3_wal_autocheckpoint(database, 4);
  sqlite3_exec(database, "CREATE TABLE outsiders (x)", nullptr, nullptr, nullptr);
  for (;;) {
    sqlite3_exec(database, "INSERT INTO outsiders VALUES (randomblob(9000))", nullptr, nullptr,
                 nullptr);
  }
}

TEST(Checkpoints, OfAnOutsiderDontEscapeTheWitness) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path);
  const test::Shared<test::Testimony> testimony;

  WatchedWriter writer{dir, *testimony, test::seed_of_test(), 1};
  test::Process outsider{[&] {
    test::CheckpointWitness witness{dir.file("marks"), *testimony};
    const test::FaultVfs vfs{witness};
    write_as_an_outsider(path, vfs.name());
  }};
  EXPECT_TRUE(test::eventually([&] {
    writer.collect();
    return testimony->overlaps > 0;
  }));

  outsider.kill();
  EXPECT_EQ(writer.stop(), 0);
}

}  // namespace
}  // namespace stela::checkpoint_test
