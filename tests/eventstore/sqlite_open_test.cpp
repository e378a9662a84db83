#include "support/orders.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/user_namespace.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>

namespace stela::sqlite_open_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <class E, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(SqliteOpen, KeepsEventsBetweenOpenings) {
  const test::TempDir dir;
  const auto id = Id<test::Order>::from("1");
  {
    auto store = sqlite::open(dir.file("shop.db"));
    auto order = test::Order::place(id, "jane", 100);
    Repository<test::Order>{store}.save(order);
  }
  auto store = sqlite::open(dir.file("shop.db"));
  EXPECT_EQ(Repository<test::Order>{store}.load(id).state().total_cents, 100);
}

TEST(SqliteOpen, LeavesTheDatabaseWholeInOneFile) {
  const test::TempDir dir;
  {
    auto store = sqlite::open(dir.file("shop.db"));
    auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 100);
    Repository<test::Order>{store}.save(order);
  }
  fs::copy_file(dir.file("shop.db"), dir.file("copy.db"));
  auto store = sqlite::open(dir.file("copy.db"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST(SqliteOpen, ExplainsABadPath) {
  const test::TempDir dir;
  const auto opening = [](const std::string& path, const sqlite::Options& options = {}) {
    return [=] { (void)sqlite::open(path, options); };
  };
  EXPECT_THAT(message_of<UsageError>(opening("")), HasSubstr("empty"));
  EXPECT_THAT(message_of<UsageError>(opening("postgresql://me:secret@host/shop")),
              AllOf(HasSubstr("URL of a server"), Not(HasSubstr("secret"))));
  EXPECT_THAT(message_of<StoreFailed>(opening(dir.path().string())), HasSubstr("is a folder"));
  EXPECT_THAT(message_of<StoreFailed>(opening("/dev/null")), HasSubstr("'/dev/null' is a device"));
  EXPECT_THAT(message_of<StoreFailed>(opening(dir.file("no/such/shop.db"))),
              HasSubstr("there is no folder"));
  EXPECT_THAT(message_of<StoreFailed>(opening(dir.file("shop.db"), {.create = false})),
              HasSubstr("there is no database"));
}

TEST(SqliteOpen, MakesADatabaseOfAnEmptyFileOnlyIfItMayMakeOne) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::ofstream{path};
  EXPECT_THAT(message_of<SchemaMismatch>([&] { (void)sqlite::open(path, {.create = false}); }),
              HasSubstr("is empty"));
  EXPECT_TRUE(fs::is_empty(path));
  EXPECT_FALSE(fs::exists(path + "-lock"));

  EXPECT_EQ(sqlite::open(path).last_sequence(), GlobalSequence{});
}

TEST(SqliteOpen, RefusesANameThatSqliteReadsInItsOwnWay) {
  const test::TempDir dir;
  EXPECT_THAT(message_of<UsageError>([] { (void)sqlite::open(":memory:"); }),
              HasSubstr("use open_in_memory"));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { (void)sqlite::open("file:" + dir.file("shop.db") + "?mode=rwc"); }),
              HasSubstr("is a URI"));
  EXPECT_FALSE(fs::exists(":memory:-lock"));
  EXPECT_TRUE(fs::is_empty(dir.path()));

  (void)sqlite::open(dir.file(":memory:"));
  (void)sqlite::open(dir.file("file:shop.db"));
  EXPECT_TRUE(fs::exists(dir.file(":memory:")));
  EXPECT_TRUE(fs::exists(dir.file("file:shop.db")));
}

TEST(SqliteOpen, RefusesAFileWithTwoNames) {
  const test::TempDir dir;
  (void)sqlite::open(dir.file("shop.db"));
  fs::create_hard_link(dir.file("shop.db"), dir.file("alias.db"));

  for (const char* const name : {"shop.db", "alias.db"}) {
    EXPECT_THAT(message_of<StoreFailed>([&] { (void)sqlite::open(dir.file(name)); }),
                HasSubstr("has 2 names (hard links)"));
  }
  EXPECT_FALSE(fs::exists(dir.file("alias.db-lock")));

  fs::remove(dir.file("alias.db"));
  EXPECT_EQ(sqlite::open(dir.file("shop.db")).last_sequence(), GlobalSequence{0});
}

/// By this user, or as the root of a namespace of its own.
bool mount_alone(const std::string& file, const std::string& at) {
  const auto bind = [&] { return mount(file.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) == 0; };
  return bind() || (test::become_root_of_a_namespace() && bind());
}

TEST(SqliteOpen, RefusesAFileThatIsMountedAlone) {
  const test::TempDir dir;
  const std::string mounted = dir.file("mounted/shop.db");
  (void)sqlite::open(dir.file("shop.db"));
  fs::create_directory(dir.file("mounted"));
  std::ofstream{mounted}.close();
  const test::Pipe said;
  test::Process opener{[&] {
    if (!mount_alone(dir.file("shop.db"), mounted)) return said.write("can't mount");
    said.write(message_of<StoreFailed>([&] { (void)sqlite::open(mounted); }));
    umount2(mounted.c_str(), MNT_DETACH);
  }};
  ASSERT_EQ(opener.wait(), 0);
  const std::string refusal = said.read_available();
  if (refusal == "can't mount") {
    GTEST_SKIP() << "this user may neither mount nor have a namespace";
  }

  EXPECT_THAT(refusal, HasSubstr("is mounted alone"));
  EXPECT_FALSE(fs::exists(mounted + "-lock"));
}

TEST(SqliteOpen, RefusesAFileThatIsNotADatabase) {
  const test::TempDir dir;
  std::ofstream{dir.file("notes.txt")} << std::string(5000, 'x');

  EXPECT_THAT(message_of<SchemaMismatch>([&] { (void)sqlite::open(dir.file("notes.txt")); }),
              HasSubstr("isn't an SQLite database"));
  EXPECT_EQ(fs::file_size(dir.file("notes.txt")), 5000u);
}

TEST(SqliteOpen, RefusesAnotherFact) {
  const test::TempDir dir;
  (void)sqlite::open(dir.file("shop.db"), {.codec = Codec::portable_binary});

  EXPECT_THAT(message_of<UsageError>(
                  [&] { (void)sqlite::open(dir.file("shop.db"), {.codec = Codec::json}); }),
              HasSubstr("made with codec 'portable_binary'"));
  EXPECT_THAT(message_of<UsageError>([&] {
                (void)sqlite::open(dir.file("shop.db"),
                                   {.durability = sqlite::Durability::relaxed});
              }),
              HasSubstr("made with durability 'full'"));
  EXPECT_EQ(sqlite::open(dir.file("shop.db")).conventions().codec, Codec::portable_binary);
}

}  // namespace
}  // namespace stela::sqlite_open_test
