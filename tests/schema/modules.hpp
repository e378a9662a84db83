// The SQL of all modules, as files.
#pragma once

#include "support/raw_sqlite.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace stela::test {

struct SqlFile {
  /// "eventstore/read_all".
  std::string name;
  std::string text;
};

std::string text_of(const std::filesystem::path& file);
std::vector<SqlFile> all_queries();

/// A database at `path` with the tables of every module.
RawSqlite make_all_tables(const std::string& path);

}  // namespace stela::test
