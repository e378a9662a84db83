// Databases that are only read: copies on media that nobody can write to, files of other users.
#include "faults/evidence.hpp"
#include "sqlite/core.hpp"
#include "support/messages.hpp"
#include "support/process.hpp"
#include "support/small_disk.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <grp.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace stela::read_only_test {
namespace {

namespace fs = std::filesystem;
using test::append;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const sqlite::Options read_only{.read_only = true};

/// A database with some events, whole in one file and with nothing beside it.
class ReadOnly : public ::testing::Test {
 protected:
  ReadOnly() {
    {
      auto store = sqlite::open(path);
      for (int i = 0; i < 3; ++i) append(store, "order-1", "{}");
    }
    for (const std::string suffix : {"-wal", "-shm", "-lock"}) fs::remove(path + suffix);
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{dir.path()}) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop #1.db");
};

TEST_F(ReadOnly, ReadsACopyOnAReadOnlyFileSystem) {
  test::SmallDisk disk{4};
  const std::string copy = disk.file("shop 100%.db");
  fs::copy_file(path, copy);
  disk.make_read_only();
  EXPECT_THROW((void)sqlite::open(copy), StoreFailed);

  auto store = sqlite::open(copy, read_only);

  EXPECT_EQ(test::entries_of(store).size(), 3U);
  EXPECT_THAT(test::problems_of(store), IsEmpty());
  EXPECT_TRUE(sqlite::backup(store, dir.file("backup.db")).finished);
}

TEST_F(ReadOnly, CreatesNoOtherFiles) {
  {
    auto store = sqlite::open(path, read_only);
    EXPECT_EQ(test::entries_of(store).size(), 3U);
    EXPECT_EQ(sqlite::path(store), fs::canonical(path));
  }
  EXPECT_THAT(files(), ElementsAre("shop #1.db"));
}

TEST_F(ReadOnly, RefusesEveryWrite) {
  auto store = sqlite::open(path, read_only);
  const auto refused = HasSubstr("opened read-only");
  EXPECT_THAT(message_of<UsageError>([&] { append(store, "order-1", "{}"); }), refused);
  EXPECT_THAT(message_of<UsageError>([&] { store.transact([](Transaction&) {}); }), refused);
  EXPECT_THAT(message_of<UsageError>([&] { sqlite::checkpoint(store); }), refused);
}

TEST_F(ReadOnly, MakesNoDatabase) {
  EXPECT_THROW((void)sqlite::open(dir.file("new.db"), read_only), StoreFailed);
  std::ofstream{dir.file("empty.db")};
  EXPECT_THROW((void)sqlite::open(dir.file("empty.db"), read_only), SchemaMismatch);
  EXPECT_EQ(fs::file_size(dir.file("empty.db")), 0U);
}

TEST_F(ReadOnly, NoticesAWriterThatBegins) {
  auto store = sqlite::open(path, read_only);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
  auto writer = sqlite::open(path);
  append(writer, "order-1", "{}");

  EXPECT_THAT(message_of<StoreFailed>([&] { (void)store.last_sequence(); }),
              HasSubstr("open it again"));
  auto again = sqlite::open(path, read_only);
  EXPECT_EQ(again.last_sequence(), GlobalSequence{4});
  append(writer, "order-1", "{}");
  EXPECT_EQ(again.last_sequence(), GlobalSequence{5});
}

TEST_F(ReadOnly, HandsOutNoPageThatSomebodyWroteInto) {
  auto store = sqlite::open(path, read_only);
  const auto read_while_others_write = [&] {
    sqlite::core_of(store).reading().read([&](sqlite::Connection& connection) {
      EXPECT_EQ(connection.integer("SELECT count(*) FROM events"), 3);
      auto writer = sqlite::open(path);
      append(writer, "order-1", "{}");
    });
  };
  EXPECT_THAT(message_of<StoreFailed>(read_while_others_write), HasSubstr("open it again"));
}

TEST_F(ReadOnly, IsNotBegunWithoutTheLogOfSomebodyWhoWrites) {
  auto writer = sqlite::open(path);
  append(writer, "order-1", "{}");
  const sqlite::ConnectionOptions without_log{.flags = SQLITE_OPEN_READONLY, .immutable = true};
  EXPECT_THAT(message_of<StoreFailed>([&] {
                sqlite::Connection{path, without_log};
              }),
              HasSubstr("open it again"));
}

struct Meeting {
  std::atomic<bool> written{false};
  std::atomic<bool> read{false};
};

/// Without a right to write to the file or its folder, beside the application.
TEST_F(ReadOnly, ReadsADatabaseThatAnotherUserWrites) {
  constexpr auto everybody_reads = static_cast<fs::perms>(0755);
  fs::permissions(dir.path(), everybody_reads);
  const test::Shared<Meeting> meeting;
  const test::Pipe seen;
  test::Process writer{[&] {
    auto store = sqlite::open(path);
    append(store, "order-1", "{}");
    meeting->written = true;
    test::eventually([&] { return meeting->read.load(); });
  }};
  test::Process reader{[&] {
    constexpr unsigned nobody = 65534;
    test::eventually([&] { return meeting->written.load(); });
    const bool may_change = geteuid() == 0;
    if (may_change && (setgroups(0, nullptr) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0)) {
      throw std::runtime_error{"can't become nobody"};
    }
    auto store = sqlite::open(path, read_only);
    seen.write(std::to_string(test::entries_of(store).size()));
    meeting->read = true;
  }};
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(seen.read_available(), "4");
}

}  // namespace
}  // namespace stela::read_only_test
