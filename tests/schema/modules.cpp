#include "schema/modules.hpp"

#include "statement_file.hpp"
#include "support/histories.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stela::test {
namespace {

const std::filesystem::path source{STELA_SOURCE_DIR};
const std::vector<std::string> modules{"eventstore", "eventstore/keys", "outbox", "outbox/nats",
                                       "projections"};

std::vector<std::filesystem::path> sql_files(const std::string& module, const char* folder) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path where = source / module / "sql" / folder;
  if (!exists(where)) return files;
  for (const auto& entry : std::filesystem::directory_iterator{where}) {
    if (entry.path().extension() == ".sql") files.push_back(entry.path());
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
    auto files = sql_files(module, "");
    for (auto& shared : sql_files(module, "operations")) files.push_back(std::move(shared));
    for (const auto& file : files) {
      for (const compiler::Statement& statement : compiler::parse(text_of(file)).statements) {
        all.push_back({module + '/' + statement.name, statement.text});
      }
    }
  }
  return all;
}

RawSqlite make_all_tables(const std::string& path) {
  open_store(path);
  RawSqlite database{path};
  for (const std::string& module : modules) {
    if (module == "eventstore") continue;
    for (const auto& file : sql_files(module, "sqlite/migrations")) database.run(text_of(file));
  }
  return database;
}

}  // namespace stela::test
