#include "schema/modules.hpp"

#include "support/histories.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stela::test {
namespace {

const std::filesystem::path source{STELA_SOURCE_DIR};
const std::vector<std::string> modules{"eventstore", "outbox", "outbox/nats", "projections"};

std::vector<std::filesystem::path> sql_files(const std::string& module, const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator{source / module / "sql" / "sqlite" / folder}) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

std::vector<SqlFile> all_queries() {
  std::vector<SqlFile> all;
  for (const std::string& module : modules) {
    for (const auto& file : sql_files(module, "queries")) {
      all.push_back({module + '/' + file.stem().string(), text_of(file)});
    }
  }
  return all;
}

RawSqlite make_all_tables(const std::string& path) {
  open_store(path);
  RawSqlite database{path};
  for (const std::string& module : modules) {
    if (module == "eventstore") continue;
    for (const auto& file : sql_files(module, "migrations")) database.run(text_of(file));
  }
  return database;
}

}  // namespace stela::test
