#include "commands/standby_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stela::tool {
namespace {

std::string in_small_letters(std::string_view text) {
  std::string small{text};
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

/// Removes the next token from `text` and returns it: a name, a number or a mark. A quoted name
/// loses its quotes.
std::string next_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\n";
  constexpr std::string_view marks = "(),";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  std::string word;
  if (text.starts_with('"')) {
    // Two quotes stand for one.
    for (text.remove_prefix(1); !text.empty(); text.remove_prefix(1)) {
      if (text.starts_with("\"\"")) {
        text.remove_prefix(1);
      } else if (text.starts_with('"')) {
        text.remove_prefix(1);
        break;
      }
      word += text.front();
    }
    return word;
  }
  const bool is_mark = !text.empty() && marks.find(text.front()) != std::string_view::npos;
  const std::size_t end = is_mark ? 1 : text.find_first_of(" \t\n(),");
  word = text.substr(0, end);
  text.remove_prefix(std::min(word.size(), text.size()));
  return word;
}

}  // namespace

bool StandbyNames::has(std::string_view name) const {
  return std::any_of(names.begin(), names.end(), [&](const std::string& one) {
    return one == "*" || one == in_small_letters(name);
  });
}

StandbyNames parse_standby_names(std::string_view text) {
  StandbyNames all;
  const std::size_t begin = text.find('(');
  // A quoted name may contain a parenthesis.
  if (begin != std::string_view::npos &&
      text.substr(0, begin).find('"') == std::string_view::npos) {
    std::string_view before = text.substr(0, begin);
    for (std::string word = next_word(before); !word.empty(); word = next_word(before)) {
      std::from_chars(word.data(), word.data() + word.size(), all.wanted);
    }
    text.remove_prefix(begin);
  }
  for (std::string word = next_word(text); !word.empty(); word = next_word(text)) {
    if (word != "(" && word != ")" && word != ",") all.names.push_back(in_small_letters(word));
  }
  return all;
}

}  // namespace stela::tool
