#include "create_statements.hpp"

#include "database/checksum.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <exception>
#include <string>

namespace stela::projections {
namespace {

bool is_space_in_sql(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/// Collapses runs of spaces, and trims both ends.
std::string with_single_spaces(std::string_view sql) {
  std::string text;
  for (const char c : sql) {
    if (!is_space_in_sql(c)) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Skips leading comments.
std::string_view from_first_word(std::string_view sql) noexcept {
  for (;;) {
    while (!sql.empty() && is_space_in_sql(sql.front())) sql.remove_prefix(1);
    const bool is_line = sql.starts_with("--");
    if (!is_line && !sql.starts_with("/*")) return sql;
    const std::string_view end = is_line ? "\n" : "*/";
    const std::size_t at = sql.find(end, 2);
    sql.remove_prefix(at == std::string_view::npos ? sql.size() : at + end.size());
  }
}

bool makes_something(std::string_view sql) {
  std::string word{sql.substr(0, sql.find_first_of(" ("))};
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 3> words{"alter", "create", "drop"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Thrown when the result depends on the database.
struct AsksTheDatabase {};

/// Stands in for a build that doesn't exist.
class ImaginedModel final : public ReadModel {
 public:
  std::string table(std::string_view name) const override { return std::string{name}; }
  std::int64_t checksum() const noexcept { return statements_.checksum(); }

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue>, Rows* rows) override {
    if (rows != nullptr) throw AsksTheDatabase{};
    statements_.add(sql, {});
    return 0;
  }

 private:
  CreateStatements statements_;
};

}  // namespace

void CreateStatements::add(std::string_view sql, std::string_view prefix) {
  std::string text = with_single_spaces(from_first_word(sql));
  if (!makes_something(text)) return;
  for (auto at = text.find(prefix); !prefix.empty() && at != std::string::npos;
       at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  checksum_ = database::checksum_of({checksum_}, {text});
  if (checksum_ == 0) checksum_ = 1;
}

std::optional<std::int64_t> checksum_of_create(detail::AnyProjector& projector) {
  ImaginedModel model;
  try {
    projector.create(model);
  } catch (const AsksTheDatabase&) {
    return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return model.checksum();
}

}  // namespace stela::projections
