// How long an append id makes a repetition harmless.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

namespace stela::append_ids_test {
namespace {

using std::chrono::days;
using testing::ManualClock;

class AppendIds : public ::testing::Test {
 protected:
  AppendResult append(std::string_view id) {
    return test::append(*store, "order-1", {NewEvent{"noted", 1, false, "{}"}}, id);
  }
  std::int64_t purge(days older_than, bool dry_run = false) {
    return StoreOperations{*store}
        .purge_append_ids(clock.now() - older_than, {.dry_run = dry_run})
        .ids;
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  ManualClock clock;
  std::unique_ptr<Store> store = test::open_store(path, {.clock = &clock});
};

TEST_F(AppendIds, AreKeptUntilTheyArePurged) {
  append("a");
  clock.advance(days{1000});

  EXPECT_TRUE(append("a").repeated);
}

TEST_F(AppendIds, ArePurgedByAge) {
  append("a");
  clock.advance(days{10});
  append("b");
  clock.advance(days{10});

  EXPECT_EQ(purge(days{21}), 0);
  EXPECT_EQ(purge(days{15}), 1);
  EXPECT_TRUE(append("b").repeated);
}

TEST_F(AppendIds, ThatWerePurgedMakeANewAppend) {
  append("a");
  clock.advance(days{10});
  purge(days{5});

  const AppendResult again = append("a");

  EXPECT_FALSE(again.repeated);
  EXPECT_EQ(again.last, GlobalSequence{2});
  EXPECT_EQ(purge(days{5}), 0);
}

TEST_F(AppendIds, AreOnlyCountedInADryRun) {
  append("a");
  clock.advance(days{10});

  EXPECT_EQ(purge(days{5}, true), 1);
  EXPECT_TRUE(append("a").repeated);
}

TEST_F(AppendIds, ArePurgedHoweverManyThereAre) {
  for (int i = 0; i < 2500; ++i) append("id-" + std::to_string(i));
  clock.advance(days{1});
  append("young");

  EXPECT_EQ(purge(days{1}), 0);
  clock.advance(std::chrono::seconds{1});
  EXPECT_EQ(purge(days{1}), 2500);
  EXPECT_TRUE(append("young").repeated);
}

TEST_F(AppendIds, WithoutEventsArePurgedByAgeToo) {
  test::append(*store, "order-1", std::vector<NewEvent>{}, "empty");
  EXPECT_EQ(purge(days{5}), 0);
  clock.advance(days{10});

  EXPECT_EQ(purge(days{5}), 1);
}

TEST_F(AppendIds, StayWhereTheyAreWhenAPurgeIsStopped) {
  append("a");
  clock.advance(days{10});
  std::stop_source stop;
  stop.request_stop();

  const auto purged =
      StoreOperations{*store}.purge_append_ids(clock.now(), {.stop = stop.get_token()});

  EXPECT_FALSE(purged.finished);
  EXPECT_TRUE(append("a").repeated);
}

TEST_F(AppendIds, AreCountedAsFarAsAStoppedPurgeCame) {
  test::RawSqlite{path}.run(
      "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
      "INSERT INTO append_ids SELECT 'id-' || i, 1, 0, 0, 1 FROM n");
  std::stop_source stop;
  const auto stop_after_a_page = [&](const Progress&) { stop.request_stop(); };

  const auto purged = StoreOperations{*store}.purge_append_ids(
      clock.now(), {.progress = stop_after_a_page, .stop = stop.get_token()});

  EXPECT_FALSE(purged.finished);
  EXPECT_EQ(purged.ids, 1000);
  EXPECT_EQ(purge(days{5}), 1500);
}

TEST_F(AppendIds, ThatStayAreNotCountedAsRemoved) {
  append("a");
  append("b");
  clock.advance(days{10});
  test::RawSqlite{path}.run(
      "CREATE TRIGGER keep BEFORE DELETE ON append_ids WHEN OLD.append_id = 'a' "
      "BEGIN SELECT RAISE(IGNORE); END");

  EXPECT_EQ(purge(days{5}), 1);
}

}  // namespace
}  // namespace stela::append_ids_test
