// docs/schema.md says what is so.
#include "schema/modules.hpp"
#include "support/temp_dir.hpp"

#include <stela/outbox/partitioner.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace stela::test::schema_page_test {
namespace {

using ::testing::SizeIs;

std::vector<std::string> lines_of_page() {
  std::istringstream page{text_of(std::string{STELA_SOURCE_DIR} + "/docs/schema.md")};
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  return lines;
}

/// "events.sequence INTEGER key", in the order of the page.
std::vector<std::string> described_columns() {
  const std::regex heading{"### `(\\w+)`"};
  const std::regex row{R"(\| `(\w+)` \| ([A-Z]+)(, key)? \| .+ \|)"};
  std::vector<std::string> columns;
  std::string table;
  std::smatch found;
  for (const std::string& line : lines_of_page()) {
    if (std::regex_match(line, found, heading)) table = found[1];
    if (line.starts_with("## ")) table.clear();
    if (table.empty() || !std::regex_match(line, found, row)) continue;
    columns.push_back(table + '.' + found[1].str() + ' ' + found[2].str() +
                      (found[3].matched ? " key" : ""));
  }
  return columns;
}

std::vector<std::string> actual_columns() {
  const TempDir dir;
  return make_all_tables(dir.file("all.db"))
      .rows(
          "SELECT t.name || '.' || c.name || ' ' || c.type || iif(c.pk > 0, ' key', '') "
          "FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
          "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'");
}

TEST(SchemaPage, DescribesExactlyTheExistingTablesAndColumns) {
  std::vector<std::string> described = described_columns();
  std::vector<std::string> actual = actual_columns();
  std::sort(described.begin(), described.end());
  std::sort(actual.begin(), actual.end());

  std::string wrong;
  for (const std::string& column : actual) {
    if (!std::binary_search(described.begin(), described.end(), column)) {
      wrong += "docs/schema.md lacks " + column + '\n';
    }
  }
  for (const std::string& column : described) {
    if (!std::binary_search(actual.begin(), actual.end(), column)) {
      wrong += "docs/schema.md describes " + column + ", which isn't there\n";
    }
  }
  EXPECT_EQ(wrong, "");
}

TEST(SchemaPage, HasTestVectorsOfThePartitioner) {
  const std::regex row{R"(\| `([^`]+)` \| (\d+) \| (\d+) \| (\d+) \|)"};
  std::smatch found;
  std::vector<std::string> seen;
  for (const std::string& line : lines_of_page()) {
    if (!std::regex_match(line, found, row)) continue;
    const std::string key = found[1];
    seen.push_back(key);
    EXPECT_EQ(PartitionId::of(key, 2), PartitionId::at(std::stoi(found[2]), 2)) << key;
    EXPECT_EQ(PartitionId::of(key, 8), PartitionId::at(std::stoi(found[3]), 8)) << key;
    EXPECT_EQ(PartitionId::of(key, 32), PartitionId::at(std::stoi(found[4]), 32)) << key;
    EXPECT_EQ(PartitionId::of(key, 1), PartitionId{0}) << key;
  }
  EXPECT_THAT(seen, SizeIs(5));
}

}  // namespace
}  // namespace stela::test::schema_page_test
