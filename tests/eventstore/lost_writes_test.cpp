// A disk that acknowledged a write and lost it: the index of streams and versions knows of events
// that the table no longer has, or the other way round.
#include "eventstore/transfer.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stela::lost_writes_test {
namespace {

using test::append;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LostWrites : public ::testing::Test {
 protected:
  /// Of the table of events or of its index, which fit into it.
  using Page = std::array<char, 4096>;

  LostWrites() { reopen(); }

  void reopen() {
    store.reset();
    store = test::open_store(path);
  }
  Page page_on_disk(const std::string& of = "events") {
    Page page{};
    find_page(of).read(page.data(), page.size());
    return page;
  }
  /// The writes since then are lost.
  void put_back(const Page& page, const std::string& of = "events") {
    find_page(of).write(page.data(), page.size());
    reopen();
  }

  /// Writes a leaf of the events' table over another.
  void copy_leaf(int from, int to) {
    store.reset();
    std::array<std::int64_t, 2> pages{};
    {
      test::RawSqlite raw{path};
      raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
      const auto page = [&](int number) {
        return raw.integer(
            "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' "
            "ORDER BY path LIMIT 1 OFFSET " +
            std::to_string(number));
      };
      pages = {page(from), page(to)};
    }
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    Page page{};
    file.seekg((pages[0] - 1) * 4096);
    file.read(page.data(), page.size());
    file.seekp((pages[1] - 1) * 4096);
    file.write(page.data(), page.size());
    file.close();
    reopen();
  }
  static std::vector<std::string> ids_in(const std::string& lines) {
    std::vector<std::string> ids;
    constexpr std::string_view key = "\"id\":\"";
    for (auto at = lines.find(key); at != std::string::npos; at = lines.find(key, at + 1)) {
      ids.push_back(lines.substr(at + key.size(), 36));
    }
    return ids;
  }

  test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store;

 private:
  std::fstream find_page(const std::string& of) {
    test::RawSqlite raw{path};
    const auto root = raw.integer("SELECT rootpage FROM sqlite_schema WHERE name = '" + of + "'");
    raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekg((root - 1) * 4096);
    file.seekp((root - 1) * 4096);
    return file;
  }
};

TEST_F(LostWrites, HaveVerifyAdviseABackup) {
  append(*store, "order-1", 3);
  const Page before = page_on_disk();
  append(*store, "order-1");
  put_back(before);

  std::vector<std::string> advice;
  StoreOperations{*store}.verify([&](const Problem& problem) { advice.push_back(problem.advice); });
  EXPECT_THAT(advice, Not(IsEmpty()));
  EXPECT_THAT(advice, Each(HasSubstr("restore a backup")));
}

TEST_F(LostWrites, AreNamedByAnExportThatPassesOverDamage) {
  append(*store, "order-1", 3);
  const Page before = page_on_disk();
  append(*store, "order-2", 2);
  put_back(before);

  std::vector<std::string> told;
  std::ostringstream out;
  const auto result = salvage_events(*store, out, [&](const UnreadableEvents& lost) {
    told.push_back(std::to_string(lost.first.value()) + " to " + std::to_string(lost.last.value()) +
                   ": " + lost.why);
  });
  EXPECT_THAT(told, ElementsAre("4 to 5: it's missing"));
  EXPECT_EQ(result.events, 3);
  EXPECT_EQ(result.lost, 2);
}

TEST_F(LostWrites, IntoAnotherPageAreNamedAndNoEventIsExportedTwice) {
  for (int i = 0; i < 300; ++i) append(*store, "order-1", 1);
  copy_leaf(2, 3);

  std::int64_t missing = 0;
  std::ostringstream out;
  const auto result = salvage_events(*store, out, [&](const UnreadableEvents& lost) {
    missing += lost.last.value() - lost.first.value() + 1;
  });

  const std::vector<std::string> ids = ids_in(out.str());
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_GT(missing, 0);
  EXPECT_EQ(result.lost, missing);
  EXPECT_EQ(result.events + missing, 300);
}

TEST_F(LostWrites, AreNotAppendedOver) {
  append(*store, "order-1", 3);
  const Page before = page_on_disk();
  append(*store, "order-1");
  put_back(before);

  EXPECT_THROW(append(*store, "order-1"), CorruptEvent);
  append(*store, "order-2");
  try {
    append(*store, "order-1");
    FAIL() << "after an event that is gone, in whose place is another";
  } catch (const CorruptEvent& e) {
    EXPECT_STREQ(e.what(),
                 "the last event of 'order-1', version 4, is missing; restore it from a backup");
  }
}

/// The lost write is the index's: nothing keeps a version from being given out again.
TEST_F(LostWrites, OfTheIndexAdviseNoRebuildOverDuplicateVersions) {
  const std::string index = "sqlite_autoindex_events_1";
  append(*store, "order-1", 3);
  const Page before = page_on_disk(index);
  append(*store, "order-1");
  put_back(before, index);
  append(*store, "order-1");

  std::vector<std::string> told;
  StoreOperations{*store}.verify([&](const Problem& problem) {
    told.push_back(problem.where + ": " + problem.what);
    EXPECT_THAT(problem.advice, HasSubstr("restore a backup")) << problem.what;
  });
  EXPECT_THAT(told, Contains("event 5: it has the stream and the version of event 4: version 4 of "
                             "stream number 1"));
}

/// The index is all that is left of what was on it.
TEST_F(LostWrites, OfAPageOfEventsAdviseNoRebuildOfTheIndex) {
  append(*store, "order-1", 400);
  store.reset();
  test::RawSqlite raw{path};
  raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const auto leaf = raw.integer(
      "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' "
      "ORDER BY pageno LIMIT 1 OFFSET 2");
  ASSERT_GT(leaf, 0);
  {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp((leaf - 1) * 4096);
    file.write(Page{}.data(), Page{}.size());
  }
  reopen();

  std::vector<std::string> advice;
  StoreOperations{*store}.verify([&](const Problem& problem) { advice.push_back(problem.advice); });
  EXPECT_THAT(advice, Not(IsEmpty()));
  EXPECT_THAT(advice, Each(Not(HasSubstr("REINDEX"))));
}

}  // namespace
}  // namespace stela::lost_writes_test
