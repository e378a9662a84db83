#include "database/postgres/sql_text.hpp"

#include <charconv>
#include <system_error>

namespace stela::postgres {
namespace {

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) noexcept {
  // Non-ASCII letters are also part of names.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c < 0;
}

std::string lower(std::string_view text) {
  std::string made{text};
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

std::size_t behind(std::string_view sql, std::string_view end, std::size_t from) noexcept {
  const std::size_t found = sql.find(end, from);
  return found == std::string_view::npos ? sql.size() : found + end.size();
}

/// Comments nest.
std::size_t end_of_comment(std::string_view sql, std::size_t at) noexcept {
  int depth = 0;
  while (at < sql.size()) {
    const std::string_view two = sql.substr(at, 2);
    if (two == "/*") ++depth;
    if (two == "*/") --depth;
    at += two == "/*" || two == "*/" ? 2 : 1;
    if (depth == 0) break;
  }
  return at;
}

/// The end of E'it\'s', in which a backslash escapes the next character.
std::size_t end_of_escaped(std::string_view sql, std::size_t at) noexcept {
  while (at < sql.size() && sql[at] != '\'') at += sql[at] == '\\' ? 2 : 1;
  return at < sql.size() ? at + 1 : sql.size();
}

/// The end of $tag$…$tag$; `at` + 1 if it isn't one.
std::size_t end_of_dollars(std::string_view sql, std::size_t at) noexcept {
  std::size_t end = at + 1;
  if (end < sql.size() && is_digit(sql[end])) return end;
  while (end < sql.size() && is_name_character(sql[end])) ++end;
  if (end >= sql.size() || sql[end] != '$') return at + 1;
  return behind(sql, sql.substr(at, end + 1 - at), end + 1);
}

/// The end of the quoted text, the comment, the name or the single character at `at`.
std::size_t end_of_piece(std::string_view sql, std::size_t at) noexcept {
  const char c = sql[at];
  if (c == '\'' || c == '"') return behind(sql, {&c, 1}, at + 1);
  if (c == '$') return end_of_dollars(sql, at);
  if (sql.substr(at, 2) == "--") return behind(sql, "\n", at + 2);
  if (sql.substr(at, 2) == "/*") return end_of_comment(sql, at);
  if (!is_name_character(c)) return at + 1;
  std::size_t end = at;
  while (end < sql.size() && (is_name_character(sql[end]) || sql[end] == '$')) ++end;
  const bool is_escape = end - at == 1 && (c == 'e' || c == 'E');
  return is_escape && end < sql.size() && sql[end] == '\'' ? end_of_escaped(sql, end + 1) : end;
}

}  // namespace

std::string with_dollars(std::string_view sql) {
  std::string text;
  for (std::size_t at = 0; at < sql.size();) {
    const bool is_parameter = sql[at] == '?' && at + 1 < sql.size() && is_digit(sql[at + 1]);
    const std::size_t end = end_of_piece(sql, at);
    if (is_parameter) {
      text += '$';
    } else {
      text.append(sql.substr(at, end - at));
    }
    at = end;
  }
  return text;
}

std::set<std::size_t> parameters_in(std::string_view sql, char mark) {
  std::set<std::size_t> numbers;
  for (std::size_t at = 0; at < sql.size(); at = end_of_piece(sql, at)) {
    if (sql[at] != mark) continue;
    std::size_t number = 0;
    const char* const begin = sql.data() + at + 1;
    const auto [end, error] = std::from_chars(begin, sql.data() + sql.size(), number);
    if (end != begin && error == std::errc{}) numbers.insert(number);
  }
  return numbers;
}

bool names(std::string_view sql, std::string_view name) {
  for (std::size_t at = 0; at < sql.size();) {
    const std::size_t end = end_of_piece(sql, at);
    const std::string_view piece = sql.substr(at, end - at);
    at = end;
    if (piece == quoted(name) || lower(piece) == name) return true;
  }
  return false;
}

std::vector<std::string> pieces_of(std::string_view sql) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < sql.size();) {
    const std::size_t end = end_of_piece(sql, at);
    const std::string_view piece = sql.substr(at, end - at);
    at = end;
    const bool is_blank = piece.find_first_not_of(" \t\r\n\f") == std::string_view::npos;
    if (is_blank || piece.starts_with("--") || piece.starts_with("/*")) continue;
    pieces.push_back(is_name_character(piece.front()) ? lower(piece) : std::string{piece});
  }
  return pieces;
}

std::string with_names(std::string_view sql) {
  std::string text;
  for (std::size_t at = 0; at < sql.size();) {
    std::size_t end = at + 1;
    while (sql[at] == '{' && end < sql.size() && is_name_character(sql[end])) ++end;
    if (end > at + 1 && end < sql.size() && sql[end] == '}') {
      text += postgres::quoted(lower(sql.substr(at + 1, end - at - 1)));
      at = end + 1;
      continue;
    }
    end = end_of_piece(sql, at);
    text.append(sql.substr(at, end - at));
    at = end;
  }
  return text;
}

std::string in_schema(std::string_view sql, std::string_view schema) {
  constexpr std::string_view own = "stela";
  if (schema == own) return std::string{sql};
  std::string text;
  const std::string name = quoted(schema);
  std::size_t done = 0;
  for (std::size_t at = sql.find(own); at != std::string_view::npos; at = sql.find(own, at + 1)) {
    const std::size_t end = at + own.size();
    const bool begins = at == 0 || (!is_name_character(sql[at - 1]) && sql[at - 1] != '.');
    if (!begins || end >= sql.size() || (sql[end] != '.' && sql[end] != ',')) continue;
    text.append(sql.substr(done, at - done)).append(name);
    done = end;
  }
  return text.append(sql.substr(done));
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

std::string first_word(std::string_view sql) {
  std::size_t begin = 0;
  while (begin < sql.size() && !is_name_character(sql[begin])) begin = end_of_piece(sql, begin);
  std::size_t end = begin;
  while (end < sql.size() && is_name_character(sql[end])) ++end;
  return lower(sql.substr(begin, end - begin));
}

}  // namespace stela::postgres
