#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/peak_memory.hpp"
#include "support/random_history.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace stela::backup_test {
namespace {

namespace fs = std::filesystem;
using test::append;
using test::full_lines;
using test::message_of;
using test::problems_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Backup : public ::testing::Test {
 protected:
  std::vector<std::string> events_of(const std::string& database) {
    auto copy = sqlite::open(database);
    EXPECT_THAT(problems_of(copy), IsEmpty());
    return full_lines(copy.read_all());
  }
  std::set<std::string> files() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{dir.path()}) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const std::string target = dir.file("copy.db");
  testing::ManualClock clock;
  const sqlite::Options options{.durability = sqlite::Durability::relaxed, .clock = &clock};
  std::unique_ptr<Store> store = test::open_store(path, options);
};

TEST_F(Backup, HoldsAllThatTheStoreHeld) {
  test::RandomHistory{3, clock}.append_to(*store, 200);
  append(*store, "order-1", {{"noted", 1, true, "{}"}}, "the-command");

  const auto result = sqlite::backup(*store, target);

  EXPECT_EQ(result.last, store->last_sequence());
  EXPECT_EQ(result.bytes, static_cast<std::int64_t>(fs::file_size(target)));
  EXPECT_EQ(events_of(target), full_lines(store->read_all()));
  auto copy = sqlite::open(target);
  EXPECT_EQ(copy.id(), store->id());
  EXPECT_EQ(sqlite::durability(copy), sqlite::Durability::relaxed);
  EXPECT_TRUE(append(copy, "order-1", {{"noted", 1, true, "{}"}}, "the-command").repeated);
}

TEST_F(Backup, ContinuesAsAStoreOfItsOwn) {
  append(*store, "order-1");
  sqlite::backup(*store, target);
  auto copy = sqlite::open(target);
  append(*store, "order-1", {{"here", 1, false, "{}"}});
  append(copy, "order-1", {{"there", 1, false, "{}"}});

  EXPECT_THAT(test::lines(store->read_all()),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 here {}"));
  EXPECT_THAT(test::lines(copy.read_all()),
              ElementsAre("1 order-1@1 noted {}", "2 order-1@2 there {}"));
}

TEST_F(Backup, IsOneMomentOfAStoreThatOthersWriteTo) {
  auto other = test::open_store(path, options);
  append(*store, "order-0", 3000);
  int written_beside = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string copy = dir.file("copy-" + std::to_string(i) + ".db");
    std::vector<std::jthread> writers;
    for (Store* const writer : {store.get(), other.get(), other.get()}) {
      writers.emplace_back([writer](const std::stop_token& stop) {
        for (int j = 0; !stop.stop_requested(); ++j) {
          append(*writer, "order-" + std::to_string(j % 50), 3);
        }
      });
    }
    const GlobalSequence before = store->last_sequence();
    const auto result = sqlite::backup(*store, copy);
    if (result.last < store->last_sequence()) ++written_beside;
    writers.clear();

    EXPECT_GE(result.last, before);
    EXPECT_EQ(events_of(copy), full_lines(store->read_all({.to = result.last})));
  }
  EXPECT_GT(written_beside, 0);
}

TEST_F(Backup, LetsTheLogBeMovedWhenItIsOver) {
  append(*store, "order-1", 100);
  sqlite::backup(*store, target);
  EXPECT_THAT(test::RawSqlite{path}.rows("PRAGMA wal_checkpoint(TRUNCATE)"), ElementsAre("0|0|0"));
}

TEST_F(Backup, CopiesADatabaseInMemory) {
  auto memory = sqlite::open_in_memory({.clock = &clock});
  test::RandomHistory{4, clock}.append_to(memory, 50);
  const auto expected = full_lines(memory.read_all());

  sqlite::backup(memory, target);

  EXPECT_EQ(events_of(target), expected);
  EXPECT_THAT(message_of<UsageError>([&] {
                memory.transact([&](Transaction&) { sqlite::backup(memory, dir.file("x.db")); });
              }),
              HasSubstr("from inside its own transaction"));
}

TEST_F(Backup, LeavesOutATransactionThatIsOpen) {
  append(*store, "order-1");
  store->transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    EXPECT_EQ(sqlite::backup(*store, target).last, GlobalSequence{1});
  });
  EXPECT_THAT(events_of(target), ::testing::SizeIs(1));
}

TEST_F(Backup, OverwritesNothing) {
  append(*store, "order-1");
  for (const std::string name : {"taken.db", "other.db-wal", "third.db-journal"}) {
    std::ofstream{dir.file(name)} << "mine";
  }
  fs::create_symlink(dir.file("nowhere"), dir.file("link.db"));
  const auto before = files();

  for (const std::string name : {"taken.db", "other.db", "third.db", "link.db", "shop.db"}) {
    EXPECT_THAT(message_of<UsageError>([&] { sqlite::backup(*store, dir.file(name)); }),
                HasSubstr("is there already"))
        << name;
  }
  EXPECT_EQ(files(), before);
  EXPECT_EQ(fs::file_size(dir.file("taken.db")), 4u);
}

TEST_F(Backup, OverwritesNothingThatAppearsMeanwhile) {
  append(*store, "order-1", 100);
  const sqlite::BackupOptions meanwhile{
      .progress = [&](const Progress&) { std::ofstream{target} << "mine"; }};

  EXPECT_THAT(message_of<UsageError>([&] { sqlite::backup(*store, target, meanwhile); }),
              HasSubstr("is there already"));

  EXPECT_EQ(fs::file_size(target), 4u);
  EXPECT_THAT(files(),
              ElementsAre("copy.db", "shop.db", "shop.db-lock", "shop.db-shm", "shop.db-wal"));
}

TEST_F(Backup, ExplainsABadTarget) {
  EXPECT_THAT(message_of<UsageError>([&] { sqlite::backup(*store, ""); }), HasSubstr("empty"));
  EXPECT_THAT(message_of<UsageError>([&] { sqlite::backup(*store, "file:copy.db"); }),
              HasSubstr("is a URI"));
  EXPECT_THAT(message_of<StoreFailed>([&] { sqlite::backup(*store, dir.file("no/such.db")); }),
              HasSubstr("there is no folder"));
}

TEST_F(Backup, HasThePermissionsOfTheOriginal) {
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  sqlite::backup(*store, target);
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Backup, LeavesNothingWhenItIsStopped) {
  append(*store, "order-1", 20'000);
  const auto before = files();
  std::stop_source stop;
  int steps = 0;
  const auto result = sqlite::backup(*store, target,
                                     {.progress =
                                          [&](const Progress& progress) {
                                            EXPECT_LE(progress.done, progress.total);
                                            if (++steps == 2) stop.request_stop();
                                          },
                                      .stop = stop.get_token()});
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(files(), before);
}

TEST_F(Backup, LeavesNothingWhenItsProgressThrows) {
  append(*store, "order-1");
  const auto before = files();
  EXPECT_THROW(sqlite::backup(*store, target, {.progress = [](const Progress&) { throw 1; }}), int);
  EXPECT_EQ(files(), before);
}

TEST_F(Backup, NeedsNoMoreMemoryForALongHistory) {
  if (!test::peaks_are_of_the_work) GTEST_SKIP() << "the sanitizer's own memory would be measured";
  const std::string payload(4000, 'x');
  const std::vector<NewEvent> events(1000, NewEvent{"noted", 1, true, payload});
  for (int i = 0; i < 20; ++i) append(*store, "order-1", events);

  EXPECT_LT(test::peak_mib_of([&] { sqlite::backup(*store, target); }), 16);
}

struct Fault {
  std::string name;
  test::Verdict verdict;
  std::vector<test::FileOperation> operations;

  friend void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
};

class FailingBackup : public Backup, public ::testing::WithParamInterface<Fault> {};

TEST_P(FailingBackup, LeavesNothingAtWhicheverCallItFails) {
  test::RandomHistory{5, clock}.append_to(*store, 60);
  store.reset();
  test::FailNth watcher;
  const test::FaultVfs vfs{watcher};
  auto failing = test::open_store(path, {.vfs = vfs.name()});
  const auto before = full_lines(failing->read_all());
  int failures = 0;
  bool has_fired = true;
  for (int nth = 1; has_fired; ++nth) {
    const auto files_before = files();
    watcher.arm({.operations = GetParam().operations, .verdict = GetParam().verdict, .nth = nth});
    try {
      (void)sqlite::backup(*failing, target);
      watcher.disarm();
      has_fired = watcher.has_fired();
      if (has_fired) fs::remove(target);
    } catch (const Error& e) {
      watcher.disarm();
      ++failures;
      EXPECT_EQ(files(), files_before) << watcher.first_failure();
      EXPECT_TRUE(e.code() == ErrorCode::store_failed || e.code() == ErrorCode::store_full)
          << e.what();
      if (GetParam().verdict == test::Verdict::disk_full) {
        EXPECT_EQ(e.code(), ErrorCode::store_full) << e.what();
      }
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(full_lines(failing->read_all()), before);
  failing.reset();
  EXPECT_EQ(events_of(target), before);
}

using test::FileOperation;
INSTANTIATE_TEST_SUITE_P(
    Faults, FailingBackup,
    ::testing::Values(Fault{"IoError",
                            test::Verdict::io_error,
                            {FileOperation::open, FileOperation::read, FileOperation::write,
                             FileOperation::truncate, FileOperation::sync}},
                      Fault{"FullDisk", test::Verdict::disk_full, {FileOperation::write}},
                      Fault{"ShortWrite", test::Verdict::short_write, {FileOperation::write}},
                      Fault{"SyncError", test::Verdict::io_error, {FileOperation::sync}}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stela::backup_test
