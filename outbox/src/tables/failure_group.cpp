#include "tables/failure_group.hpp"

#include "database/checksum.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace stela::outbox {
namespace {

bool is_word(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_hex(std::string_view word) noexcept {
  constexpr std::size_t shortest = 8;
  return word.size() >= shortest && std::all_of(word.begin(), word.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

bool has_digit(std::string_view word) noexcept {
  return std::any_of(word.begin(), word.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

/// The position after the closing mark of a quotation that begins here; `begin` if there is none.
std::size_t end_of_quoted(std::string_view line, std::size_t begin) noexcept {
  for (const auto& [opens, closes] : {std::pair{std::string_view{"'"}, std::string_view{"'"}},
                                      {std::string_view{"\""}, std::string_view{"\""}},
                                      {std::string_view{"«"}, std::string_view{"»"}}}) {
    if (!line.substr(begin).starts_with(opens)) continue;
    const std::size_t end = line.find(closes, begin + opens.size());
    if (end != std::string_view::npos) return end + closes.size();
  }
  return begin;
}

}  // namespace

std::string masked(std::string_view error) {
  const std::string_view line = error.substr(0, error.find('\n'));
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    // The apostrophe of "isn't" opens no quotation.
    const bool may_open = at == 0 || !is_word(line[at - 1]);
    if (const std::size_t end = may_open ? end_of_quoted(line, at) : at; end > at) {
      text += '*';
      at = end;
      continue;
    }
    if (!is_word(line[at])) {
      text += line[at++];
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && is_word(line[at])) ++at;
    const std::string_view word = line.substr(begin, at - begin);
    if (has_digit(word) || is_hex(word)) {
      text += '*';
    } else {
      text += word;
    }
  }
  return text;
}

std::string failure_of(std::string_view reason, std::string_view type, std::string_view error) {
  constexpr int digits = 11;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string whole{reason};
  whole.append("\n").append(type).append("\n").append(masked(error));
  std::uint64_t hash = database::text_checksum(whole);
  std::string name = "f";
  for (int i = 0; i < digits; ++i, hash >>= 4U) name += hex[hash & 0xfU];
  return name;
}

}  // namespace stela::outbox
