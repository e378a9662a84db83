#include "postgres_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

namespace stela::compiler {
namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view name_of(Type type) {
  switch (type) {
    case Type::integer:
    case Type::time:
      return "bigint";
    case Type::boolean:
      return "boolean";
    case Type::text:
      return "text";
    case Type::blob:
      return "bytea";
    case Type::int4:
      return "integer";
    case Type::uuid:
      return "uuid";
  }
  return {};
}

std::string parameter(int number, Type type, bool is_array) {
  const std::string name = '$' + std::to_string(number);
  if (!is_array && type == Type::boolean) return '(' + name + "::bigint <> 0)";
  return name + "::" + std::string{name_of(type)} + (is_array ? "[]" : "");
}

/// Rewrites a text from its beginning to its end.
class Rewriting {
 public:
  explicit Rewriting(const Statement& statement)
      : statement_{statement},
        left_{statement.on_postgres.empty() ? statement.text : statement.on_postgres} {}

  std::string finish() {
    while (!left_.empty()) step();
    if (used_.size() != statement_.parameters.size()) fail("doesn't use all that it takes");
    return std::move(done_);
  }

 private:
  void step() {
    if (left_.front() == '\'') return take(left_.find('\'', 1) + 1);
    if (left_.substr(0, 2) == "--") return take(std::min(left_.find('\n'), left_.size()));
    if (left_.substr(0, 2) == "::") return take(2);
    if (left_.front() == ':') return take_parameter();
    if (!is_name_character(left_.front())) return take(1);
    if (statement_.text.empty()) return take(end_of_name(0));
    if (replace("IS NOT :", "IS DISTINCT FROM ", 1)) return;
    if (replace("IS :", "IS NOT DISTINCT FROM ", 1)) return;
    if (replace("CROSS JOIN ", "JOIN ", 0)) return;
    if (replace("NOT INDEXED", "", 0)) return;
    if (replace("INDEXED BY ", "", 0)) return drop(end_of_name(0));
    take(end_of_name(0));
  }

  /// The last `kept` characters of the replaced text are scanned again.
  bool replace(std::string_view words, std::string_view others, std::size_t kept) {
    if (left_.substr(0, words.size()) != words) return false;
    done_ += others;
    drop(words.size() - kept);
    return true;
  }

  void take_parameter() {
    const std::size_t end = end_of_name(1);
    const std::string_view name = left_.substr(1, end - 1);
    const auto known = std::find_if(statement_.parameters.begin(), statement_.parameters.end(),
                                    [&](const Value& each) { return each.name == name; });
    if (known == statement_.parameters.end()) fail("takes no '" + std::string{name} + "'");
    used_.insert(known->name);
    const auto at = static_cast<std::size_t>(known - statement_.parameters.begin());
    int number = statement_.numbers[at];
    if (known->columns.empty()) done_ += parameter(number, known->type, known->is_array);
    for (std::size_t i = 0; i < known->columns.size(); ++i) {
      if (i > 0) done_ += ", ";
      done_ += parameter(number++, known->columns[i].type, true);
    }
    drop(end);
  }

  std::size_t end_of_name(std::size_t from) const {
    while (from < left_.size() && is_name_character(left_[from])) ++from;
    return from;
  }
  void take(std::size_t size) {
    done_ += left_.substr(0, size);
    drop(size);
  }
  void drop(std::size_t size) { left_.remove_prefix(size); }
  [[noreturn]] void fail(const std::string& what) const {
    throw Malformed{statement_.line, "'" + statement_.name + "', on PostgreSQL: " + what};
  }

  const Statement& statement_;
  std::string_view left_;
  std::string done_;
  std::set<std::string> used_;
};

}  // namespace

std::string postgres_text(const Statement& statement) {
  return Rewriting{statement}.finish();
}

void make_postgres(StatementFile& file) {
  file.is_postgres = true;
  for (Statement& statement : file.statements) {
    statement.on_postgres = std::exchange(statement.text, {});
    int next = 1;
    for (const Value& parameter : statement.parameters) {
      statement.numbers.push_back(next);
      next += parameter.columns.empty() ? 1 : static_cast<int>(parameter.columns.size());
    }
  }
}

}  // namespace stela::compiler
