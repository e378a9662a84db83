// Stela's tables beside those of an application, in the application's own file.
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace stela::shared_file_test {
namespace {

using test::append;
using test::problems_of;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SharedFile : public ::testing::Test {
 protected:
  SharedFile() { std::ofstream{path}; }

  /// As the application does, which knows a function and a collation that Stela doesn't.
  void as_application(const std::string& sql) {
    test::RawSqlite application{path};
    const auto first = [](sqlite3_context* context, int, sqlite3_value** values) {
      sqlite3_result_value(context, values[0]);
    };
    const auto compare = [](void*, int size, const void* text, int other_size, const void* other) {
      return std::string_view{static_cast<const char*>(text), static_cast<std::size_t>(size)}
          .compare({static_cast<const char*>(other), static_cast<std::size_t>(other_size)});
    };
    sqlite3_create_function(application.handle(), "norm", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                            nullptr, first, nullptr, nullptr);
    sqlite3_create_collation(application.handle(), "GERMAN", SQLITE_UTF8, nullptr, compare);
    application.run(sql);
  }

  /// "table customers: unknown function: norm()".
  std::vector<std::string> unchecked(const VerifyOptions& how = {}) {
    auto store = test::open_store(path);
    std::vector<std::string> all;
    const auto result = StoreOperations{*store}.verify([](const Problem&) {}, how);
    for (const auto& [table, why] : result.unchecked) {
      all.push_back("table ");
      all.back().append(table).append(": ").append(why);
    }
    return all;
  }

  test::TempDir dir;
  const std::string path = dir.file("app.db");
};

class SharedFileWithIndexes : public SharedFile {
 protected:
  SharedFileWithIndexes() {
    as_application(
        "CREATE TABLE customers (name TEXT, city TEXT);"
        "CREATE INDEX by_norm ON customers (norm(name));"
        "INSERT INTO customers VALUES ('a', 'x'), ('b', 'y');"
        "CREATE TABLE prices (price INTEGER CHECK (norm(price) > 0));"
        "INSERT INTO prices VALUES (3);"
        "CREATE TABLE orders (number INTEGER PRIMARY KEY, note TEXT NOT NULL);"
        "INSERT INTO orders VALUES (1, 'first')");
    auto store = sqlite::open(path, {.share_file = true});
    append(store, "order-1", 3);
  }
};

TEST_F(SharedFileWithIndexes, VerifyNamesTheTablesThatOnlyTheApplicationCanCheck) {
  EXPECT_THAT(problems_of(*test::open_store(path)), IsEmpty());
  EXPECT_THAT(unchecked(), ElementsAre("table prices: unknown function: norm()",
                                       "table (free and shared pages): unknown function: norm()"));

  EXPECT_THAT(problems_of(*test::open_store(path), {.thorough = true}), IsEmpty());
  EXPECT_THAT(unchecked({.thorough = true}),
              UnorderedElementsAre("table customers: unknown function: norm()",
                                   "table prices: unknown function: norm()",
                                   "table (free and shared pages): unknown function: norm()"));
}

TEST_F(SharedFileWithIndexes, VerifyFindsDamageInTheOtherTables) {
  test::RawSqlite{path}.run(
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', 'NOT NULL CHECK (note = 1)')"
      "  WHERE name = 'orders'");

  EXPECT_THAT(problems_of(*test::open_store(path)),
              ElementsAre("file: the file: CHECK constraint failed in orders"));
}

TEST_F(SharedFileWithIndexes, VerifyFindsADamagedPageOfAnotherTable) {
  const std::int64_t page =
      test::RawSqlite{path}.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'orders'");
  test::RawSqlite{path}.run("PRAGMA wal_checkpoint(TRUNCATE)");
  constexpr int fragmented_bytes = 7;
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekp((page - 1) * 4096 + fragmented_bytes);
  file.put('\x7f').flush();

  EXPECT_THAT(problems_of(*test::open_store(path)),
              Contains(ContainsRegex("[Pp]age " + std::to_string(page))));
}

/// What the messages tell to do, up to the end of the statement.
std::string cure_in(const std::string& text) {
  const std::size_t at = text.find("PRAGMA application_id = ");
  return at == std::string::npos ? "" : text.substr(at, text.find_first_of(";,", at) - at);
}

TEST_F(SharedFile, SaysHowTheApplicationIdIsPutBack) {
  as_application("CREATE TABLE orders (number INTEGER PRIMARY KEY)");
  append(*test::open_store(path, {.share_file = true}), "order-1");
  for (const char* const id : {"77", "0"}) {
    for (const sqlite::Options& how :
         {sqlite::Options{}, sqlite::Options{.share_file = true}, {.read_only = true}}) {
      as_application(std::string{"PRAGMA application_id = "} + id);
      std::string error;
      try {
        test::open_store(path, how);
      } catch (const SchemaMismatch& e) {
        error = e.what();
      }
      ASSERT_EQ(cure_in(error), "PRAGMA application_id = 1398031692") << error;
      as_application(cure_in(error));
      EXPECT_EQ(test::lines(test::open_store(path, how)->read_all()),
                (std::vector<std::string>{"1 order-1@1 noted {}"}));
    }
  }
}

TEST_F(SharedFile, VerifySaysHowTheApplicationIdIsPutBack) {
  auto store = test::open_store(path, {.share_file = true});
  as_application("PRAGMA application_id = 77");
  std::vector<std::string> advice;
  StoreOperations{*store}.verify([&](const Problem& problem) { advice.push_back(problem.advice); });
  ASSERT_EQ(advice.size(), 1U);
  as_application(cure_in(advice.front()));
  EXPECT_THAT(problems_of(*store), IsEmpty());
}

TEST_F(SharedFile, VerifyNamesAForeignKeyThatOnlyTheApplicationCanCheck) {
  as_application(
      "CREATE TABLE cities (name TEXT COLLATE GERMAN PRIMARY KEY);"
      "CREATE TABLE streets (city TEXT REFERENCES cities (name));"
      "CREATE TABLE parents (id INTEGER);"
      "CREATE TABLE children (parent INTEGER REFERENCES parents (id));"
      "CREATE TABLE a (id INTEGER PRIMARY KEY);"
      "CREATE TABLE b (a INTEGER REFERENCES a (id));"
      "INSERT INTO streets VALUES (NULL);"
      "INSERT INTO b VALUES (5)");
  append(*test::open_store(path, {.share_file = true}), "order-1");

  EXPECT_THAT(problems_of(*test::open_store(path)),
              ElementsAre("file: table b, row 1: it refers to a missing row of a"));
  EXPECT_THAT(unchecked(),
              UnorderedElementsAre(
                  "table cities: no such collation sequence: GERMAN",
                  "table streets: no such collation sequence: GERMAN",
                  "table (free and shared pages): no such collation sequence: GERMAN",
                  R"(table children: foreign key mismatch - "children" referencing "parents")"));
}

}  // namespace
}  // namespace stela::shared_file_test
