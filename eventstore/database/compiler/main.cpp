// stela_sql_compiler MODULE OUTPUT-FOLDER [--schema FOLDER]... [--postgres] FILE.sql...
//
// Writes OUTPUT-FOLDER/FILE.hpp for each file of statements, after checking them against the tables
// that the folders' migrations create, in the given order. Files after --postgres run only on
// PostgreSQL, and their declarations aren't checked.
#include "check.hpp"
#include "header.hpp"
#include "postgres_text.hpp"
#include "statement_file.hpp"
#include "tables.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace stela::compiler {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream in{file};
  if (!in) throw std::runtime_error{"can't read '" + file.string() + "'"};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

void migrate(Schema& schema, const fs::path& folder) {
  std::vector<fs::path> files{fs::directory_iterator{folder}, fs::directory_iterator{}};
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) schema.migrate(read(file));
}

/// `schema`: null for files that only PostgreSQL runs.
void compile(const fs::path& source, const Schema* schema, const std::string& module,
             const fs::path& output) {
  StatementFile file;
  try {
    file = parse(read(source));
    if (schema == nullptr) {
      make_postgres(file);
    } else {
      add_statements_of_tables(file, *schema);
      for (Statement& statement : file.statements) schema->check(statement);
    }
  } catch (const Malformed& e) {
    throw std::runtime_error{source.string() + ':' + std::to_string(e.line) + ": " + e.what()};
  }
  fs::create_directories(output);
  std::ofstream out{output / source.filename().replace_extension("hpp")};
  out << header_of(file, module, source.filename().string());
  if (!out.flush()) throw std::runtime_error{"can't write into '" + output.string() + "'"};
}

void run(const std::vector<std::string>& words) {
  if (words.size() < 2) throw std::runtime_error{"usage: MODULE OUTPUT [--schema FOLDER] FILE..."};
  Schema schema;
  bool is_postgres = false;
  for (std::size_t at = 2; at < words.size(); ++at) {
    if (words[at] == "--schema" && at + 1 < words.size()) {
      migrate(schema, words[++at]);
    } else if (words[at] == "--postgres") {
      is_postgres = true;
    } else {
      compile(words[at], is_postgres ? nullptr : &schema, words[0], words[1]);
    }
  }
}

}  // namespace
}  // namespace stela::compiler

int main(int count, char** words) {
  try {
    stela::compiler::run({words + 1, words + count});
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
