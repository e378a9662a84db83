// `stela checkpoint`, beside other connections.
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stela::test::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class ToolCheckpoint : public ::testing::Test {
 protected:
  ToolCheckpoint() {
    run_well({"migrate", "--db", db_});
    append();
    other_.emplace(db_);
  }
  void append() {
    run_well({"events", "append", "--db", db_, "--stream", "order-1", "--type", "order.placed",
              "--data", "{}"});
  }
  Ran checkpoint(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"checkpoint", "--db", db_, "--set", "store.busy_timeout=1ms"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
  /// As long as somebody reads the database, its log stays.
  std::optional<RawSqlite> other_;
};

TEST_F(ToolCheckpoint, EmptiesTheLog) {
  other_->run("BEGIN; SELECT count(*) FROM events");
  append();
  other_->run("COMMIT");
  ASSERT_GT(fs::file_size(db_ + "-wal"), 0U);

  const Ran ran = checkpoint();

  EXPECT_EQ(ran.out, "The write-ahead log is empty.\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(fs::file_size(db_ + "-wal"), 0U);
  EXPECT_EQ(checkpoint({"--json"}).out, "{\"complete\":true,\"pages_left\":0}\n");
}

TEST_F(ToolCheckpoint, TellsOfAReaderOfAnOlderState) {
  other_->run("BEGIN; SELECT count(*) FROM events");
  append();

  const Ran ran = checkpoint();
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, MatchesRegex("[0-9]+ pages? of the write-ahead log can't move to the "
                                    "database yet: another connection reads an older state.\n"));
  EXPECT_THAT(checkpoint({"--json"}).out,
              MatchesRegex(R"(\{"complete":false,"pages_left":[1-9][0-9]*\}.)"));

  other_->run("COMMIT");
  EXPECT_EQ(checkpoint().code, 0);
}

TEST_F(ToolCheckpoint, TellsOfAConnectionThatUsesTheEmptyLog) {
  append();
  other_->run("BEGIN; SELECT count(*) FROM events");
  append();
  other_->run("COMMIT; BEGIN; SELECT count(*) FROM events");

  const Ran ran = checkpoint();
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out,
            "Everything is in the database; another connection still uses the write-ahead "
            "log.\n");
  EXPECT_EQ(checkpoint({"--json"}).out, "{\"complete\":false,\"pages_left\":0}\n");
}

TEST_F(ToolCheckpoint, SaysThatADeviceIsNoDatabase) {
  const Ran ran = run({"checkpoint", "--db", "/dev/null"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("'/dev/null' is a device"));
}

TEST_F(ToolCheckpoint, TellsOfAWriter) {
  other_->run("BEGIN IMMEDIATE");
  const Ran ran = checkpoint();
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out + ran.err, HasSubstr("another connection"));
}

}  // namespace
}  // namespace stela::test::checkpoint_test
