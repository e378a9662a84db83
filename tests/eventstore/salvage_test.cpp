// What can still be read of a damaged store, as lines of an export.
#include "eventstore/transfer.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace stela::salvage_test {
namespace {

using test::append;
using test::export_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Salvage : public ::testing::Test {
 protected:
  /// Each event's payload has its sequence, and fills some of a page.
  void make(int count) {
    store = test::open_store(path, {.durability = sqlite::Durability::relaxed});
    for (int i = 1; i <= count; ++i) {
      const std::string payload = R"({"number":")" + marker(i) + std::string(400, 'x') + "\"}";
      append(*store, "order-1", {NewEvent{"noted", 1, false, payload}});
    }
    before = split(export_of(*store));
    store.reset();
  }
  static std::string marker(int number) { return "<" + std::to_string(number) + ">"; }

  void change(const std::string& sql) {
    test::RawSqlite raw{path};
    raw.drop_triggers();
    raw.run(sql);
  }
  /// Overwrites the head of the page in which the event lies.
  void ruin_page_of(int number) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    const std::size_t at = bytes.find(marker(number));
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at / 4096 * 4096));
    file << std::string(8, '\xff');
  }

  /// "5 to 6: it's missing".
  std::vector<std::string> salvage(const SalvageOptions& options = {}) {
    std::vector<std::string> told;
    std::ostringstream out;
    store = test::open_store(path);
    const auto report = [&](const UnreadableEvents& lost) {
      told.push_back(std::to_string(lost.first.value()) + " to " +
                     std::to_string(lost.last.value()) + ": " + lost.why);
    };
    result = salvage_events(*store, out, report, options);
    saved = split(out.str());
    return told;
  }

  test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  std::unique_ptr<Store> store;
  std::vector<std::string> before;
  std::vector<std::string> saved;
  SalvageResult result;
};

TEST_F(Salvage, IsAnExportOfAStoreThatIsWhole) {
  make(3000);
  EXPECT_THAT(salvage(), IsEmpty());
  EXPECT_EQ(saved, before);
  EXPECT_EQ(result.events, 3000);
  EXPECT_TRUE(result.finished);
}

TEST_F(Salvage, SkipsDamagedAndMissingEvents) {
  make(2000);
  change(
      "UPDATE events SET payload = x'00' WHERE sequence IN (3, 4, 1500);"
      "DELETE FROM events WHERE sequence IN (6, 7, 1000) OR sequence BETWEEN 1020 AND 1400");
  EXPECT_THAT(salvage(),
              ElementsAre("3 to 4: it doesn't match its checksum", "6 to 7: it's missing",
                          "1000 to 1000: it's missing", "1020 to 1400: it's missing",
                          "1500 to 1500: it doesn't match its checksum"));
  std::erase_if(before, [](const std::string& line) {
    const auto number = [&] { return std::stoi(line.substr(line.find(':') + 1)); };
    if (!line.starts_with("{\"sequence\":")) return false;
    const int sequence = number();
    return sequence == 3 || sequence == 4 || sequence == 6 || sequence == 7 || sequence == 1000 ||
           (sequence >= 1020 && sequence <= 1400) || sequence == 1500;
  });
  EXPECT_EQ(saved, before);
  EXPECT_EQ(result.lost, 387);
  EXPECT_EQ(result.events, 2000 - 387);
}

TEST_F(Salvage, SkipsPagesThatSqliteCannotRead) {
  make(200);
  ruin_page_of(50);
  ruin_page_of(200);
  const auto told = salvage();

  ASSERT_EQ(told.size(), 2U);
  for (const std::string& line : told) EXPECT_THAT(line, HasSubstr("malformed"));
  EXPECT_TRUE(std::includes(before.begin(), before.end(), saved.begin(), saved.end(),
                            [](const std::string& a, const std::string& b) {
                              return a.size() != b.size() ? a.size() < b.size() : a < b;
                            }));
  EXPECT_GT(result.events, 160);
  EXPECT_THAT(saved, ::testing::Contains(HasSubstr(marker(120))));
}

TEST_F(Salvage, IsAdvisedWhereAnEventCantBeRead) {
  make(200);
  ruin_page_of(50);
  store = test::open_store(path);
  try {
    export_of(*store);
    FAIL() << "it was read";
  } catch (const StoreFailed& e) {
    EXPECT_THAT(e.what(), HasSubstr("damaged: keep a copy, and restore a backup; 'export "
                                    "--skip-damaged' saves what can still be read"));
  }
}

TEST_F(Salvage, IsNotAdvisedWhereNoStoreCanBeOpened) {
  make(200);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2 / 4096 * 4096);
  try {
    test::open_store(path);
    FAIL() << "it was opened";
  } catch (const StoreFailed& e) {
    EXPECT_THAT(e.what(), ::testing::EndsWith("damaged: keep a copy, and restore a backup"));
  }
}

TEST_F(Salvage, GoesFromOneEventToAnother) {
  make(20);
  change("DELETE FROM events WHERE sequence IN (4, 9)");
  EXPECT_THAT(salvage({.from = GlobalSequence{5}, .to = GlobalSequence{10}}),
              ElementsAre("9 to 9: it's missing"));
  EXPECT_EQ(result.events, 5);
}

TEST_F(Salvage, IsNotHeldUpByASequenceThatCannotBe) {
  make(3);
  change("UPDATE events SET sequence = 9223372036854775807 WHERE sequence = 3");
  const auto told = salvage();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told.front(), HasSubstr("3 to "));
  EXPECT_EQ(result.events, 2);
}

TEST_F(Salvage, CompletesARestoredBackup) {
  make(10);
  const std::string backup = dir.file("backup.db");
  {
    auto old = sqlite::open(backup);
    std::string text;
    for (std::size_t i = 0; i <= 6; ++i) text += before[i] + '\n';
    test::import_text(old, text);
  }
  change("UPDATE events SET payload = x'00' WHERE sequence = 2");
  EXPECT_THAT(salvage({.from = GlobalSequence{7}}), IsEmpty());

  std::string text;
  for (const std::string& line : saved) text += line + '\n';
  auto restored = sqlite::open(backup);
  EXPECT_EQ(test::import_text(restored, text).imported, 4);
  EXPECT_EQ(split(export_of(restored)), before);
}

TEST_F(Salvage, EndsWhenItIsToldTo) {
  make(3);
  std::stop_source stop;
  stop.request_stop();
  salvage({.stop = stop.get_token()});
  EXPECT_FALSE(result.finished);
  EXPECT_EQ(result.events, 0);
}

}  // namespace
}  // namespace stela::salvage_test
