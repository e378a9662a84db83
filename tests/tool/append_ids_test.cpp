// `stela append-ids purge`, interrupted.
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace stela::test::append_ids_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t all = 10'000;

/// A database with many old append ids, which go slowly: whoever purges them can be interrupted.
class ToolAppendIds : public ::testing::Test {
 protected:
  ToolAppendIds() {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    RawSqlite raw{db_};
    raw.run(
        "WITH RECURSIVE n(i) AS (VALUES (10001) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "INSERT INTO append_ids SELECT 'id-' || i, 1, 0, 0, 1 FROM n");
    raw.run(
        "CREATE VIEW slow AS WITH RECURSIVE n(i) AS "
        "(VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500000) SELECT max(i) AS most FROM n");
    raw.run(
        "CREATE TRIGGER slows_down BEFORE DELETE ON append_ids WHEN OLD.append_id LIKE '%500' "
        "BEGIN SELECT most FROM slow; END");
  }
  std::int64_t left() { return RawSqlite{db_}.integer("SELECT count(*) FROM append_ids"); }
  /// Purges, and is interrupted once some are gone. What it printed.
  Ran interrupt(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"append-ids", "purge",        "--db", db_,
                                   "--yes",      "--older-than", "1d"};
    words.insert(words.end(), more.begin(), more.end());
    Running purging{words};
    EXPECT_TRUE(eventually([&] { return left() < all; })) << purging.err();
    purging.signal(SIGINT);
    const int code = purging.wait();
    return {code, purging.out(), purging.err()};
  }

  TempDir dir_ = TempDir::in_memory();
  const std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolAppendIds, SaysHowManyWentBeforeAnInterruption) {
  const Ran ran = interrupt();

  EXPECT_EQ(ran.code, 130) << ran.err;
  ASSERT_GT(left(), 0);
  std::string removed = std::to_string(all - left());
  removed.insert(removed.size() - 3, ",");
  EXPECT_EQ(ran.out, "Removed " + removed +
                         " append ids before the interruption; run it again for the rest.\n");
}

TEST_F(ToolAppendIds, SaysSoInJson) {
  const Ran ran = interrupt({"--json"});

  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(member(ran.out, "append_ids"), std::to_string(all - left()));
  EXPECT_EQ(member(ran.out, "finished"), "false");
}

}  // namespace
}  // namespace stela::test::append_ids_test
