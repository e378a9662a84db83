#include "statement_file.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

namespace stela::compiler {
namespace {

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return std::string{text.substr(begin, text.find_last_not_of(" \t\n;") + 1 - begin)};
}

bool is_name(std::string_view text) {
  return !text.empty() && std::islower(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

constexpr std::pair<std::string_view, Type> words[] = {
    {"int", Type::integer}, {"bool", Type::boolean}, {"time", Type::time}, {"text", Type::text},
    {"blob", Type::blob},   {"int4", Type::int4},    {"uuid", Type::uuid}};

constexpr std::string_view starts[] = {"-- name:", "-- row:", "-- table:"};
enum class Kind { statement, row, table };

/// One `-- name:`, `-- row:` or `-- table:`, and the lines up to the next one.
class Block {
 public:
  Block(Kind kind, std::string name, int line) : kind_{kind}, name_{std::move(name)}, line_{line} {}

  void add(std::string_view line) {
    if (line == "-- engine: postgres") {
      on_postgres_.emplace();
      return;
    }
    if (on_postgres_) {
      *on_postgres_ += std::string{line} + '\n';
      return;
    }
    if (line.substr(0, 2) != "--" || !trimmed(text_).empty()) {
      text_ += std::string{line} + '\n';
      return;
    }
    line.remove_prefix(2);
    const auto colon = std::min(line.find(':'), line.size());
    if (const std::string word = trimmed(line.substr(0, colon)); is_list(word)) {
      list_ = &(lists_[word] = line.substr(colon + 1));
      return;
    }
    if (list_ != nullptr && line.substr(0, 3) == "   ") {
      *list_ += line;
      return;
    }
    list_ = nullptr;
    comment_ += trimmed(line) + '\n';
  }

  void finish(StatementFile& file) const {
    if (!is_name(name_)) fail('\'' + name_ + "' isn't a name: lower-case letters, digits and _");
    if (kind_ == Kind::table) {
      if (!trimmed(text_).empty()) fail("a table has no statement, it is only described");
      file.tables.push_back(
          {name_, list("where"), items(list("stays")), items(list("sets")), line_});
      return;
    }
    if (kind_ == Kind::row) {
      const bool is_taken = lists_.contains("takes");
      if (!trimmed(text_).empty() || (is_taken && lists_.contains("gives"))) {
        fail("a row has no statement, it only gives columns, or is taken with them");
      }
      file.rows.push_back({name_, values(list(is_taken ? "takes" : "gives")), is_taken});
      return;
    }
    Statement statement{.name = name_,
                        .comment = trimmed(comment_),
                        .doing = list("doing"),
                        .text = trimmed(text_),
                        .on_postgres = trimmed(on_postgres_.value_or("")),
                        .parameters = values(list("takes"), file.rows),
                        .numbers = {},
                        .columns = {},
                        .row = {},
                        .line = line_};
    if (statement.text.empty()) fail("'" + name_ + "' has no statement");
    give(statement, file.rows);
    file.statements.push_back(std::move(statement));
  }

 private:
  bool is_list(std::string_view word) const {
    if (kind_ != Kind::table) return word == "takes" || word == "gives" || word == "doing";
    return word == "where" || word == "stays" || word == "sets";
  }
  std::string list(const std::string& word) const {
    const auto found = lists_.find(word);
    return found != lists_.end() ? trimmed(found->second) : std::string{};
  }

  void give(Statement& statement, const std::vector<Row>& rows) const {
    const std::string given = list("gives");
    if (!is_name(given)) {
      statement.columns = values(given);
      return;
    }
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& each) { return each.name == given; });
    if (row == rows.end()) fail("no row '" + given + "' before it");
    statement.row = given;
    statement.columns = row->columns;
  }

  static std::vector<std::string> items(std::string_view list) {
    std::vector<std::string> all;
    while (!trimmed(list).empty()) {
      const auto comma = std::min(list.find(','), list.size());
      all.push_back(trimmed(list.substr(0, comma)));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return all;
  }
  std::vector<Value> values(std::string_view list, const std::vector<Row>& rows = {}) const {
    std::vector<Value> all;
    for (const std::string& item : items(list)) all.push_back(value(item, rows));
    return all;
  }

  Value value(const std::string& text, const std::vector<Row>& rows) const {
    const auto space = std::min(text.find(' '), text.size());
    const std::string name = text.substr(0, space);
    std::string type = trimmed(text.substr(space));
    if (!is_name(name)) fail('\'' + text + "' isn't a name and a type");
    const bool is_optional = !type.empty() && type.back() == '?';
    if (is_optional) type.pop_back();
    const bool is_array = type.size() > 2 && type.substr(type.size() - 2) == "[]";
    if (is_array) type.resize(type.size() - 2);
    for (const auto& [word, known] : words) {
      if (type == word) return {name, known, is_optional, is_array};
    }
    for (const Row& row : rows) {
      if (is_array && row.is_taken && row.name == type) {
        return {name, Type::text, is_optional, is_array, row.name, row.columns};
      }
    }
    fail("the type of '" + text + "' isn't int, bool, time, text or blob");
  }

  [[noreturn]] void fail(const std::string& what) const { throw Malformed{line_, what}; }

  Kind kind_;
  std::string name_;
  int line_;
  std::string comment_;
  std::string text_;
  std::optional<std::string> on_postgres_;
  std::map<std::string, std::string> lists_;
  /// The list that the next line may continue.
  std::string* list_ = nullptr;
};

}  // namespace

StatementFile parse(std::string_view text) {
  StatementFile file;
  std::optional<Block> block;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto* const start =
        std::find_if(std::begin(starts), std::end(starts),
                     [&](std::string_view each) { return line.substr(0, each.size()) == each; });
    if (start != std::end(starts)) {
      if (block) block->finish(file);
      block.emplace(static_cast<Kind>(start - starts), trimmed(line.substr(start->size())), number);
    } else if (block) {
      block->add(line);
    } else if (!line.empty() && line.substr(0, 2) != "--") {
      throw Malformed{number, "a statement without '-- name:'"};
    }
  }
  if (block) block->finish(file);
  return file;
}

}  // namespace stela::compiler
