// Sentences with gaps.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace stela::care {

/// `text` with the values in the place of each {}, in this order.
inline std::string sentence(std::string_view text, std::initializer_list<std::string_view> values) {
  std::string filled;
  for (const std::string_view value : values) {
    const std::size_t at = text.find("{}");
    if (at == std::string_view::npos) break;
    filled.append(text.substr(0, at)).append(value);
    text.remove_prefix(at + 2);
  }
  return filled.append(text);
}

}  // namespace stela::care
