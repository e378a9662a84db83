// Commands that only read, where this user can't write: on read-only media, in files of others.
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/small_disk.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stela::test::read_only_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ToolReadOnly : public ::testing::Test {
 protected:
  ToolReadOnly() {
    run_well({"migrate", "--db", original_});
    run_well({"outbox", "enable", "--db", original_});
    for (const char* const stream : {"order-1", "order-2"}) {
      run_well({"events", "append", "--db", original_, "--stream", stream, "--type", "order.placed",
                "--publish", "--data", "{}"});
    }
    fs::copy_file(original_, copy_);
    disk_.make_read_only();
  }
  static Ran run_on(const std::string& database, std::vector<std::string> words) {
    words.insert(words.end(), {"--db", database});
    return run(words);
  }

  TempDir dir_ = TempDir::in_memory();
  std::string original_ = dir_.file("shop.db");
  SmallDisk disk_{4};
  std::string copy_ = disk_.file("shop.db");
};

TEST_F(ToolReadOnly, PrintsTheSameAsElsewhere) {
  const std::vector<std::vector<std::string>> table{
      {"verify"},
      {"verify", "--thorough", "--json"},
      {"events", "list"},
      {"events", "show", "2"},
      {"events", "stats"},
      {"streams", "list"},
      {"streams", "show", "order-2"},
      {"snapshots", "list"},
      {"export"},
      {"outbox", "list", "--json"},
      {"outbox", "workers"},
      {"projections", "status"},
      {"projections", "list"},
  };
  for (const auto& words : table) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const Ran expected = run_on(original_, words);
    const Ran ran = run_on(copy_, words);
    EXPECT_EQ(ran.err, expected.err);
    EXPECT_EQ(ran.out, expected.out);
    EXPECT_EQ(ran.code, 0);
  }
}

TEST_F(ToolReadOnly, ShowsTheOutbox) {
  const Ran status = run_on(copy_, {"outbox", "status", "--json"});
  EXPECT_EQ(status.err, "");
  EXPECT_EQ(member(status.out, "pending"), "2");
  EXPECT_THAT(run_on(copy_, {"outbox", "show", "2"}).out, HasSubstr("order-2"));
  EXPECT_THAT(run_on(copy_, {"outbox", "partitions", "list"}).out, HasSubstr("PENDING"));
  const Ran checked = run_on(copy_, {"outbox", "check"});
  EXPECT_EQ(checked.code, 2) << checked.err;
  EXPECT_THAT(checked.out,
              HasSubstr("CRITICAL: 2 messages are pending, and there is no live worker"));
}

TEST_F(ToolReadOnly, SaysThatNothingCanBeWritten) {
  EXPECT_THAT(run_on(copy_, {"outbox", "check", "--min-workers", "0"}).out,
              HasSubstr("CRITICAL: the database can't be written to: "));
  EXPECT_EQ(run_on(copy_, {"inbox", "check"}).code, 2);
  EXPECT_EQ(run_on(original_, {"outbox", "check", "--min-workers", "0"}).code, 0);
  const Ran doctor = run_on(copy_, {"doctor"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("critical writing: the database can't be written to: "));
  EXPECT_EQ(doctor.err, "");
}

TEST_F(ToolReadOnly, BacksUp) {
  const std::string backup = dir_.file("backup.db");
  const Ran ran = run_on(copy_, {"backup", backup});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(run_on(backup, {"export"}).out, run_on(original_, {"export"}).out);
}

TEST_F(ToolReadOnly, ReadsAFileOfAnotherUser) {
  constexpr auto everybody_reads = static_cast<fs::perms>(0755);
  fs::permissions(dir_.path(), everybody_reads);
  fs::permissions(original_, fs::perms::owner_read | fs::perms::others_read);
  for (const std::string command : {"verify", "export"}) {
    const Ran expected = run_on(original_, {command});
    const Ran ran = run_unprivileged({command, "--db", original_});
    EXPECT_EQ(ran.err, expected.err);
    EXPECT_EQ(ran.out, expected.out);
    EXPECT_EQ(ran.code, 0);
  }
}

TEST_F(ToolReadOnly, RefusesToWriteInOneSentence) {
  const std::vector<std::vector<std::string>> table{
      {"events", "append", "--stream", "order-1", "--type", "a.b", "--data", "{}"},
      {"checkpoint"},
      {"migrate"},
      {"outbox", "retry", "--all"},
      {"append-ids", "purge", "--older-than", "1d", "--yes"},
  };
  for (const auto& words : table) {
    SCOPED_TRACE(::testing::PrintToString(words));
    const Ran ran = run_on(copy_, words);
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("is read-only"));
    EXPECT_THAT(lines_of(ran.err), SizeIs(1));
  }
}

TEST(ToolOnAFullDisk, SaysSo) {
  SmallDisk disk{4};
  if (!disk.is_mounted()) GTEST_SKIP() << "a limit to files isn't seen as a full disk";
  const std::string db = disk.file("shop.db");
  run_well({"migrate", "--db", db});
  run_well({"outbox", "enable", "--db", db});
  Running worker{{"outbox", "work", "--db", db, "--nats", "nats://127.0.0.1:1", "--metrics", "0"}};
  EXPECT_THAT(run({"doctor", "--db", db}).out, HasSubstr("ok       writing: "));
  disk.fill_up(std::size_t{100} * 1024);

  EXPECT_THAT(run({"doctor", "--db", db}).out,
              HasSubstr("critical writing: the database can't be written to: its disk is full"));
  const Ran checked = run({"outbox", "check", "--db", db, "--format", "nagios"});
  EXPECT_EQ(checked.code, 2);
  EXPECT_THAT(checked.out, HasSubstr("the database can't be written to: its disk is full"));
  EXPECT_THAT(checked.out, HasSubstr(" unwritable=1;;0"));
  const std::string problem = "database: can't be written to: its disk is full";
  EXPECT_TRUE(eventually([&] {
    const std::uint16_t port = port_in(worker.err());
    return port != 0 && get(port, "/readyz").find(problem) != std::string::npos;
  })) << worker.err();
}

/// Another program's write transaction, and a writer of ours that waits for it with Stela's own
/// lock.
class ToolWhileAnotherProgramWrites : public ::testing::Test {
 protected:
  ToolWhileAnotherProgramWrites() {
    run_well({"migrate", "--db", db_});
    run_well({"outbox", "enable", "--db", db_});
    run_well(append("5s"));
    foreign_.emplace(db_).run("BEGIN IMMEDIATE");
  }
  std::vector<std::string> append(const std::string& timeout) const {
    return {"events",   "append",       "--db",   db_,  "--stream", "order-1",
            "--type",   "order.placed", "--data", "{}", "--set",    "store.busy_timeout=" + timeout,
            "--publish"};
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
  std::optional<RawSqlite> foreign_;
};

TEST_F(ToolWhileAnotherProgramWrites, ShowsTheDatabase) {
  Running waiting{append("1m")};
  const std::string to_blame = "which waits for process " + std::to_string(getpid());
  ASSERT_TRUE(
      eventually([&] { return run(append("1ms")).err.find(to_blame) != std::string::npos; }));

  const std::vector<std::vector<std::string>> table{
      {"outbox", "status"},
      {"outbox", "list"},
      {"outbox", "show", "1"},
      {"outbox", "workers"},
      {"outbox", "partitions", "list"},
      {"inbox", "status"},
      {"events", "list"},
      {"events", "show", "1"},
      {"events", "stats"},
      {"streams", "list"},
      {"streams", "show", "order-1"},
      {"snapshots", "list"},
      {"projections", "status"},
      {"verify"},
      {"export"},
      {"backup", dir_.file("backup.db")},
  };
  for (auto words : table) {
    SCOPED_TRACE(::testing::PrintToString(words));
    words.insert(words.end(), {"--db", db_, "--set", "store.busy_timeout=1ms"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  }
  // Nobody can append meanwhile: an alarm, with who is to blame.
  for (std::vector<std::string> check : {std::vector<std::string>{"check"},
                                         {"outbox", "check"},
                                         {"inbox", "check"},
                                         {"timers", "check"}}) {
    SCOPED_TRACE(::testing::PrintToString(check));
    check.insert(check.end(), {"--db", db_, "--set", "store.busy_timeout=1ms"});
    const Ran ran = run(check);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.out, HasSubstr(to_blame));
  }
  const Ran doctor = run({"doctor", "--db", db_, "--set", "store.busy_timeout=1ms"});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("critical writing: "));
  EXPECT_THAT(doctor.out, HasSubstr(to_blame));

  foreign_->run("ROLLBACK");
  EXPECT_EQ(waiting.wait(), 0) << waiting.err();
}

}  // namespace
}  // namespace stela::test::read_only_test
