#include "database/sqlite/sql_text.hpp"

#include <sqlite3.h>

namespace stela::sqlite {
namespace {

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The end of the quoted text, the comment or the single character at `at`.
std::size_t end_of_piece(std::string_view sql, std::size_t at) noexcept {
  const auto behind = [&](std::string_view end, std::size_t from) {
    const std::size_t found = sql.find(end, from);
    return found == std::string_view::npos ? sql.size() : found + end.size();
  };
  const char c = sql[at];
  if (c == '\'' || c == '"' || c == '`') return behind({&c, 1}, at + 1);
  if (c == '[') return behind("]", at + 1);
  if (sql.substr(at, 2) == "--") return behind("\n", at + 2);
  if (sql.substr(at, 2) == "/*") return behind("*/", at + 2);
  return at + 1;
}

}  // namespace

std::string_view first_word(std::string_view sql) noexcept {
  std::size_t begin = 0;
  while (begin < sql.size() && !is_name_character(sql[begin])) begin = end_of_piece(sql, begin);
  std::size_t end = begin;
  while (end < sql.size() && is_name_character(sql[end])) ++end;
  return sql.substr(begin, end - begin);
}

std::string with_table_names(std::string_view sql, std::string_view prefix) {
  std::string text;
  for (std::size_t at = 0; at < sql.size();) {
    if (sql[at] == '{') {
      std::size_t end = at + 1;
      while (end < sql.size() && is_name_character(sql[end])) ++end;
      if (end > at + 1 && end < sql.size() && sql[end] == '}') {
        text.append("\"").append(prefix).append(sql.substr(at + 1, end - at - 1)).append("\"");
        at = end + 1;
        continue;
      }
    }
    const std::size_t end = end_of_piece(sql, at);
    text.append(sql.substr(at, end - at));
    at = end;
  }
  return text;
}

bool leaves_key_to_commit(std::string_view sql) {
  bool is_initially = false;
  for (std::size_t at = 0, end = 0; at < sql.size(); at = end) {
    while (end < sql.size() && is_name_character(sql[end])) ++end;
    if (end == at) {
      end = end_of_piece(sql, at);
      continue;
    }
    const std::string word{sql.substr(at, end - at)};
    if (is_initially && sqlite3_stricmp(word.c_str(), "deferred") == 0) return true;
    is_initially = sqlite3_stricmp(word.c_str(), "initially") == 0;
  }
  return false;
}

bool is_blank(std::string_view sql) noexcept {
  return sql.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

}  // namespace stela::sqlite
