// Files that can't be opened, aren't what they should be, or change while they are open.
#include "faults/evidence.hpp"
#include "support/fault_vfs.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/small_disk.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

namespace stela::opening_test {
namespace {

namespace fs = std::filesystem;
using test::append;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// "store_failed: …", or "done".
template <class Call>
std::string what_comes_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string{to_string(e.code())} + ": " + e.what();
  }
  return "done";
}

std::string what_comes_of_opening(const std::string& path, const sqlite::Options& options = {}) {
  return what_comes_of([&] { (void)sqlite::open(path, options); });
}

constexpr unsigned nobody = 65534;

/// A user for whom permissions count.
void become_nobody() {
  if (geteuid() != 0) return;
  if (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0) {
    throw std::runtime_error{"can't become nobody"};
  }
}

/// What comes of `path` being opened and written to by such a user.
std::string as_nobody_opens(const std::string& path) {
  const test::Pipe pipe;
  test::Process child{[&] {
    become_nobody();
    pipe.write(what_comes_of([&] {
      auto store = sqlite::open(path);
      append(store, "order-1", "{}");
    }));
  }};
  EXPECT_EQ(child.wait(), 0);
  return pipe.read_available();
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder}) names.insert(entry.path().filename());
  return names;
}

/// A database with some events, whole in one file.
class Opening : public ::testing::Test {
 protected:
  static constexpr int events = 60;

  Opening() {
    auto store = sqlite::open(path);
    for (int i = 0; i < events; ++i) append(store, "order-1", std::string(700, 'x'));
  }
  /// Removes what SQLite and Stela put beside the file, for a test to see what is put there anew.
  void tidy() const {
    for (const std::string suffix : {"-wal", "-shm", "-lock"}) fs::remove(path + suffix);
  }

  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
};

// --- what isn't ours

TEST_F(Opening, LeavesADatabaseOfANewerStelaAlone) {
  test::RawSqlite{path}.run(
      "INSERT INTO stela_migrations VALUES ('eventstore', 999, 'future', 'x', 0)");
  { test::RawSqlite{path}.run("PRAGMA wal_checkpoint(TRUNCATE)"); }
  const auto before = test::hash_of_file(path);

  EXPECT_THAT(what_comes_of_opening(path),
              AllOf(StartsWith("schema_mismatch"), HasSubstr("of a newer Stela"),
                    HasSubstr("leaves the database as it is")));
  EXPECT_EQ(test::hash_of_file(path), before);
  EXPECT_EQ(fs::file_size(path + "-wal"), 0u);
}

TEST_F(Opening, CreatesNoFilesNextToAForeignFile) {
  const test::TempDir other;
  std::ofstream{other.file("app.db")};
  { test::RawSqlite{other.file("app.db")}.run("CREATE TABLE users (name TEXT)"); }
  std::ofstream{other.file("notes.txt")} << std::string(3000, 'n');
  const auto database = test::hash_of_file(other.file("app.db"));
  const auto notes = test::hash_of_file(other.file("notes.txt"));

  EXPECT_THAT(what_comes_of_opening(other.file("app.db")),
              AllOf(StartsWith("schema_mismatch"), HasSubstr("another application"),
                    HasSubstr("share_file")));
  EXPECT_THAT(what_comes_of_opening(other.file("notes.txt")),
              AllOf(StartsWith("schema_mismatch"), HasSubstr("isn't an SQLite database")));
  EXPECT_EQ(test::hash_of_file(other.file("app.db")), database);
  EXPECT_EQ(test::hash_of_file(other.file("notes.txt")), notes);
  EXPECT_THAT(files_in(other.path()), ElementsAre("app.db", "notes.txt"));
}

/// What comes of putting Stela's tables into the application's file that `sql` makes.
std::string what_comes_of_sharing(const std::string& app, const std::string& sql) {
  std::ofstream{app};
  { test::RawSqlite{app}.run(sql); }
  return what_comes_of([&] {
    auto store = sqlite::open(app, {.share_file = true});
    append(store, "order-1", "{}");
  });
}

TEST_F(Opening, LeavesAFileAloneInWhichTheApplicationHasANameOfStelas) {
  for (const std::string sql :
       {"CREATE TABLE Events (x)", "CREATE VIEW streams AS SELECT 1 AS x",
        "CREATE TABLE t (x); CREATE INDEX snapshots ON t (x)", "CREATE TABLE append_ids (x)",
        "CREATE TABLE stela_migrations (x)"}) {
    const test::TempDir other;
    const std::string app = other.file("app.db");
    { std::ofstream{other.file("copy.db")}; }
    { test::RawSqlite{other.file("copy.db")}.run(sql); }

    EXPECT_THAT(what_comes_of_sharing(app, sql),
                AllOf(StartsWith("schema_mismatch"), HasSubstr("nothing was changed")))
        << sql;
    EXPECT_EQ(test::hash_of_file(app), test::hash_of_file(other.file("copy.db"))) << sql;
    EXPECT_THAT(files_in(other.path()), ElementsAre("app.db", "copy.db")) << sql;
  }
}

TEST_F(Opening, LeavesAFileAloneThatStoresTextAsUtf16) {
  for (const std::string sql : {"CREATE TABLE orders (x)", "CREATE TABLE t (x); DROP TABLE t"}) {
    const test::TempDir other;
    const std::string app = other.file("app.db");

    EXPECT_THAT(what_comes_of_sharing(app, "PRAGMA encoding = 'UTF-16le';" + sql),
                AllOf(StartsWith("schema_mismatch"), HasSubstr("stores text as UTF-16"),
                      HasSubstr(".dump")))
        << sql;
    EXPECT_THAT(files_in(other.path()), ElementsAre("app.db")) << sql;
  }
}

TEST_F(Opening, NamesAConflictingTableInASharedFile) {
  const test::TempDir other;
  EXPECT_THAT(what_comes_of_sharing(other.file("app.db"),
                                    "CREATE TABLE Events (x); CREATE TABLE streams (x);"
                                    "CREATE TABLE mine (x)"),
              AllOf(HasSubstr("'Events', 'streams';"), HasSubstr("a file of its own")));
}

TEST_F(Opening, SharesAFileWhoseTriggerIsCalledAsATableOfStelas) {
  const test::TempDir other;
  EXPECT_EQ(what_comes_of_sharing(other.file("app.db"),
                                  "CREATE TABLE mine (x); CREATE TRIGGER events AFTER INSERT ON "
                                  "mine BEGIN SELECT 1; END"),
            "done");
}

TEST_F(Opening, LeavesTheApplicationItsUserVersion) {
  const test::TempDir other;
  const std::string app = other.file("app.db");
  EXPECT_EQ(what_comes_of_sharing(app, "PRAGMA user_version = 5; CREATE TABLE mine (x)"), "done");
  EXPECT_EQ(test::RawSqlite{app}.integer("PRAGMA user_version"), 5);

  test::RawSqlite{app}.run("PRAGMA user_version = 6");
  auto store = sqlite::open(app);
  EXPECT_EQ(StoreOperations{store}.verify([](const Problem&) {}).problems, 0);
  EXPECT_EQ(test::RawSqlite{app}.integer("PRAGMA user_version"), 6);
}

// --- what is damaged

TEST_F(Opening, NoticesEveryLengthThatAFileWasCutTo) {
  tidy();
  const std::string cut = dir.file("cut.db");
  const auto size = fs::file_size(path);
  for (std::uintmax_t length = 1; length < size; length += length < 600 ? 7 : 509) {
    fs::copy_file(path, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, length);
    const auto before = test::hash_of_file(cut);

    EXPECT_THAT(what_comes_of_opening(cut),
                AnyOf(AllOf(StartsWith("store_failed"), HasSubstr("damaged")),
                      AllOf(StartsWith("schema_mismatch"), HasSubstr("isn't an SQLite database"))))
        << length;
    EXPECT_EQ(test::hash_of_file(cut), before) << length;
  }
}

TEST_F(Opening, NeverLosesAnEventToAFlippedByteOfTheHeader) {
  constexpr int header_size = 100;
  tidy();
  const std::string flipped = dir.file("flipped.db");
  int refused = 0;
  for (int at = 0; at < header_size; ++at) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      fs::copy_file(path, flipped, fs::copy_options::overwrite_existing);
      {
        std::fstream file{flipped, std::ios::in | std::ios::out | std::ios::binary};
        file.seekg(at);
        const int byte = file.get();
        file.seekp(at);
        file.put(static_cast<char>(byte ^ mask));
      }
      const auto before = test::hash_of_file(flipped);
      std::size_t seen = 0;
      const std::string end = what_comes_of([&] {
        auto store = sqlite::open(flipped);
        seen = test::entries_of(store).size();
      });

      if (end == "done") {
        EXPECT_EQ(seen, static_cast<std::size_t>(events)) << "byte " << at;
        continue;
      }
      ++refused;
      EXPECT_THAT(end, AnyOf(StartsWith("store_failed"), StartsWith("schema_mismatch")));
      EXPECT_EQ(test::hash_of_file(flipped), before) << "byte " << at << ": " << end;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST_F(Opening, DropsNoLogThatHasLostItsDatabase) {
  const std::string log = dir.file("copy.db-wal");
  {
    auto store = sqlite::open(path);
    append(store, "order-1", "{}");
    fs::copy_file(path + "-wal", log);
  }
  const auto before = test::hash_of_file(log);

  EXPECT_THAT(what_comes_of_opening(dir.file("copy.db")),
              AllOf(StartsWith("store_failed"), HasSubstr("move the log away")));
  std::ofstream{dir.file("copy.db")};
  EXPECT_THAT(what_comes_of_opening(dir.file("copy.db")), StartsWith("store_failed"));
  EXPECT_EQ(test::hash_of_file(log), before);

  fs::copy_file(path, dir.file("copy.db"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(what_comes_of_opening(dir.file("copy.db")), "done");
}

// --- what isn't allowed

TEST_F(Opening, NamesMissingPermissions) {
  constexpr auto all = fs::perms::all;
  constexpr auto read = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  constexpr auto enter = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  fs::permissions(dir.path(), all);
  const auto before = test::hash_of_file(path);

  tidy();
  fs::permissions(path, read);
  EXPECT_THAT(as_nobody_opens(path),
              AllOf(StartsWith("store_failed"), HasSubstr("is read-only; give this user")));
  fs::permissions(path, fs::perms::none);
  EXPECT_THAT(as_nobody_opens(path),
              AllOf(StartsWith("store_failed"), HasSubstr("Permission denied"),
                    HasSubstr("may read and write the file and the folder")));
  EXPECT_EQ(test::hash_of_file(path), before);

  fs::permissions(path, all);
  fs::permissions(dir.path(), read | enter);
  EXPECT_THAT(as_nobody_opens(path), AllOf(StartsWith("store_failed"), HasSubstr("folder")));
  fs::permissions(dir.path(), fs::perms::none);
  EXPECT_THAT(as_nobody_opens(path), AllOf(StartsWith("store_failed"), HasSubstr("folder")));

  fs::permissions(dir.path(), all);
  EXPECT_EQ(test::hash_of_file(path), before);
  tidy();
  EXPECT_EQ(as_nobody_opens(path), "done");
}

TEST_F(Opening, SaysThatAFileSystemIsReadOnly) {
  test::SmallDisk disk{4};
  fs::permissions(fs::path{disk.file("")}, fs::perms::all);
  const std::string copy = disk.file("shop.db");
  fs::copy_file(path, copy);
  fs::permissions(copy, fs::perms::all);
  const auto before = test::hash_of_file(copy);
  disk.make_read_only();

  EXPECT_THAT(as_nobody_opens(copy), AllOf(StartsWith("store_failed"), HasSubstr("read-only")));
  EXPECT_THAT(as_nobody_opens(disk.file("new.db")),
              AllOf(StartsWith("store_failed"), HasSubstr("folder")));
  EXPECT_EQ(test::hash_of_file(copy), before);
}

// --- the lock file

TEST_F(Opening, GivesTheLockFileTheModeAndOwnerOfTheDatabase) {
  constexpr auto group_writable = static_cast<fs::perms>(0660);
  const bool is_root = geteuid() == 0;
  const uid_t owner = is_root ? nobody : geteuid();
  const gid_t group = is_root ? nobody : getegid();
  fs::permissions(dir.path(), fs::perms::all);
  tidy();
  fs::permissions(path, group_writable);
  ASSERT_EQ(chown(path.c_str(), owner, group), 0);

  EXPECT_EQ(what_comes_of_opening(path), "done");

  struct stat lock {};
  ASSERT_EQ(stat((path + "-lock").c_str(), &lock), 0);
  EXPECT_EQ(fs::status(path + "-lock").permissions(), group_writable);
  EXPECT_EQ(lock.st_uid, owner);
  EXPECT_EQ(lock.st_gid, group);
  EXPECT_EQ(as_nobody_opens(path), "done");
}

TEST_F(Opening, FollowsNoLinkInPlaceOfTheLockFile) {
  tidy();
  for (const std::string& target : {dir.file("elsewhere"), path}) {
    fs::create_symlink(target, path + "-lock");
    EXPECT_THAT(what_comes_of_opening(path),
                AllOf(StartsWith("store_failed"), HasSubstr("it is a symbolic link; remove it")));
    fs::remove(path + "-lock");
  }
  EXPECT_FALSE(fs::exists(dir.file("elsewhere")));
}

TEST_F(Opening, MakesNoLockOfAnythingButAFile) {
  tidy();
  ASSERT_EQ(mkfifo((path + "-lock").c_str(), 0600), 0);
  EXPECT_THAT(what_comes_of_opening(path),
              AllOf(StartsWith("store_failed"), HasSubstr("it isn't a file; remove it")));
}

// --- what a path leads to

TEST_F(Opening, ThroughALinkSharesLogAndLockWithTheFile) {
  const std::string link = dir.file("link.db");
  fs::create_symlink(path, link);
  auto store = sqlite::open(link, {.busy_timeout = std::chrono::milliseconds{20}});
  append(store, "order-1", "{}");

  EXPECT_EQ(sqlite::path(store), fs::canonical(path));
  EXPECT_FALSE(fs::exists(link + "-lock"));
  EXPECT_FALSE(fs::exists(link + "-wal"));
  const int lock = ::open((path + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_THROW(append(store, "order-1", "{}"), StoreBusy);
  close(lock);
  EXPECT_NO_THROW(append(store, "order-1", "{}"));
}

TEST_F(Opening, HoldsOnToItsFileWhenTheProcessChangesItsFolder) {
  fs::create_directory(dir.file("elsewhere"));
  test::Process child{[&] {
    fs::current_path(dir.path());
    auto store = sqlite::open("shop.db");
    fs::current_path(dir.file("elsewhere"));
    append(store, "order-1", "{}");
    if (test::entries_of(store).size() != events + 1) throw std::runtime_error{"events missing"};
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(files_in(dir.file("elsewhere")).empty());
}

// --- what happens to an open file

TEST_F(Opening, RefusesToWriteToAFileThatWasDeleted) {
  auto store = sqlite::open(path);
  append(store, "order-1", "{}");
  for (const std::string suffix : {"", "-wal", "-shm", "-lock"}) fs::remove(path + suffix);

  EXPECT_THAT(what_comes_of([&] { append(store, "order-1", "{}"); }),
              AllOf(StartsWith("store_failed"), HasSubstr("deleted, moved or replaced"),
                    HasSubstr("nothing was written")));
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Opening, RefusesToWriteToAFileThatWasReplaced) {
  const std::string backup = dir.file("backup.db");
  fs::copy_file(path, backup);
  const auto before = test::hash_of_file(backup);
  {
    auto store = sqlite::open(path);
    append(store, "order-1", "{}");
    fs::rename(backup, path);
    EXPECT_THAT(what_comes_of([&] { append(store, "order-1", "{}"); }),
                AllOf(StartsWith("store_failed"), HasSubstr("restart this process")));
  }
  EXPECT_EQ(test::hash_of_file(path), before);
}

/// Does something once, when the database is open and its log is looked at.
class WhileOpening final : public test::FileWatcher {
 public:
  explicit WhileOpening(std::function<void()> what) : what_{std::move(what)} {}
  void after(const test::FileCall& call, int) noexcept override {
    if (call.operation == test::FileOperation::shm_map && what_) std::exchange(what_, nullptr)();
  }

 private:
  std::function<void()> what_;
};

/// What comes of `path` being opened and written to, while something happens to it.
std::string what_comes_of_opening_while(const std::string& path, std::function<void()> something) {
  WhileOpening watcher{std::move(something)};
  const test::FaultVfs vfs{watcher};
  return what_comes_of([&] {
    auto store = sqlite::open(path, {.vfs = vfs.name()});
    append(store, "order-1", "{}");
  });
}

TEST_F(Opening, RefusesAFileThatIsReplacedMeanwhile) {
  const std::string backup = dir.file("backup.db");
  fs::copy_file(path, backup);

  EXPECT_THAT(what_comes_of_opening_while(path, [&] { fs::rename(backup, path); }),
              AllOf(StartsWith("store_failed: the database '"),
                    HasSubstr("replaced while it was being opened")));
  EXPECT_EQ(what_comes_of_opening(path), "done");
}

TEST_F(Opening, RefusesAFileThatIsDeletedMeanwhile) {
  auto writer = sqlite::open(path);
  append(writer, "order-1", "{}");

  EXPECT_THAT(what_comes_of_opening_while(path, [&] { fs::remove(path); }),
              AllOf(StartsWith("store_failed: the database '"),
                    HasSubstr("replaced while it was being opened")));
}

TEST_F(Opening, RefusesToReadAFileThatWasReplaced) {
  const std::string backup = dir.file("backup.db");
  fs::copy_file(path, backup);
  auto store = sqlite::open(path);
  append(store, "order-1", "{}");
  fs::rename(backup, path);
  const auto refuses = [](auto&& use) {
    return what_comes_of(use).starts_with("store_failed: the database '");
  };

  EXPECT_TRUE(refuses([&] { (void)store.last_sequence(); }));
  EXPECT_TRUE(refuses([&] { (void)test::entries_of(store); }));
  EXPECT_TRUE(refuses([&] { (void)StoreOperations{store}.verify([](const Problem&) {}); }));
  EXPECT_TRUE(refuses([&] { (void)sqlite::backup(store, dir.file("copy.db")); }));
  EXPECT_FALSE(fs::exists(dir.file("copy.db")));
}

TEST_F(Opening, PublishesNoBackupOfAFileThatIsReplacedMeanwhile) {
  const std::string other = dir.file("other.db");
  fs::copy_file(path, other);
  auto store = sqlite::open(path);
  const auto replace = [&](const Progress&) {
    if (fs::exists(other)) fs::rename(other, path);
  };

  EXPECT_THAT(what_comes_of(
                  [&] { (void)sqlite::backup(store, dir.file("copy.db"), {.progress = replace}); }),
              StartsWith("store_failed: the database '"));
  EXPECT_FALSE(fs::exists(dir.file("copy.db")));
}

TEST_F(Opening, EndsACheckOfAFileThatIsReplacedMeanwhile) {
  const std::string other = dir.file("other.db");
  fs::copy_file(path, other);
  auto store = sqlite::open(path);
  const auto replace = [&](const Progress&) {
    if (fs::exists(other)) fs::rename(other, path);
  };

  EXPECT_THAT(what_comes_of([&] {
                (void)StoreOperations{store}.verify([](const Problem&) {}, {.progress = replace});
              }),
              StartsWith("store_failed: the database '"));
}

TEST_F(Opening, ContinuesWhenAFileIsPutBack) {
  auto store = sqlite::open(path);
  fs::rename(path, dir.file("aside.db"));
  EXPECT_THROW(append(store, "order-1", "{}"), StoreFailed);
  EXPECT_THROW((void)store.last_sequence(), StoreFailed);
  fs::rename(dir.file("aside.db"), path);
  EXPECT_EQ(append(store, "order-1", "{}").last, GlobalSequence{events + 1});
}

TEST_F(Opening, StoresKeepEachOtherOutWhenTheLockFileIsTidiedAway) {
  auto store = sqlite::open(path, {.busy_timeout = std::chrono::milliseconds{20}});
  append(store, "order-1", "{}");
  fs::remove(path + "-lock");
  append(store, "order-1", "{}");

  const int lock = ::open((path + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0) << "the store goes on with a file that nobody else can see";
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_THROW(append(store, "order-1", "{}"), StoreBusy);
  close(lock);
}

}  // namespace
}  // namespace stela::opening_test
