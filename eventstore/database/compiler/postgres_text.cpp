#include "postgres_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>

namespace stela::compiler {
namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Rewrites a text from start to end.
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
    const std::string number = '$' + std::to_string(statement_.numbers[at]);
    switch (known->type) {
      case Type::integer:
      case Type::time:
        done_ += number + "::bigint";
        break;
      case Type::boolean:
        done_ += '(' + number + "::bigint <> 0)";
        break;
      case Type::text:
        done_ += number + "::text";
        break;
      case Type::blob:
        done_ += number + "::bytea";
        break;
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

}  // namespace stela::compiler
