#include "http/message.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

int value_of_hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

bool HttpRequest::has(std::string_view field) const noexcept {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& one) { return one.first == field; });
}

std::optional<std::string> HttpRequest::field(std::string_view name) const {
  std::optional<std::string> value;
  for (const auto& [field, text] : fields) {
    if (field != name) continue;
    if (value) return {};
    value = text;
  }
  return value;
}

std::optional<std::string> decode_percent(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    if (at + 2 >= text.size()) return {};
    const int high = value_of_hex(text[at + 1]);
    const int low = value_of_hex(text[at + 2]);
    if (high < 0 || low < 0 || high + low == 0) return {};
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

std::optional<std::vector<std::pair<std::string, std::string>>> decode_query(
    std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = decode_percent(part.substr(0, equals));
    auto value = decode_percent(part.substr(std::min(equals + 1, part.size())));
    if (!name || !value) return {};
    pairs.emplace_back(*std::move(name), *std::move(value));
  }
  return pairs;
}

}  // namespace stela::tool
