#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/stream_id.hpp>

namespace stela {
namespace {

/// The name in a form that a message can show: printable and limited in length.
std::string shown(std::string_view name) {
  constexpr std::size_t max_shown = 80;
  const bool whole_text = json::is_utf8(name);
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool begins_character = !whole_text || (byte & 0xc0) != 0x80;
    if (text.size() >= max_shown && begins_character) return text.append("…");
    text += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !whole_text) ? '?' : c;
  }
  return text;
}

[[noreturn]] void refuse(std::string_view name, std::string_view rule) {
  throw UsageError{"'" + shown(name) + "' can't be a stream name: " + std::string{rule}};
}

/// The rule that `key` breaks, or nothing.
std::string_view broken_key_rule(std::string_view key) {
  if (key.empty()) return "the key after the first '-' is empty";
  if (key.size() > StreamId::max_key_size) return "the key is longer than 190 bytes";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return "the key has a control character";
    if (c == ' ') return "the key has a space";
  }
  if (!json::is_utf8(key)) return "the key isn't valid UTF-8";
  // U+0080 to U+009F, the second set of control characters.
  for (std::size_t i = 0; i + 1 < key.size(); ++i) {
    if (key[i] == '\xc2' && static_cast<unsigned char>(key[i + 1]) < 0xa0) {
      return "the key has a control character";
    }
  }
  return {};
}

constexpr std::string_view category_rule =
    "the category before the first '-' is 1 to 64 characters of a-z, 0-9 and _, the first a letter";

}  // namespace

StreamId StreamId::of(std::string_view category, std::string_view key) {
  std::string name;
  name.reserve(category.size() + 1 + key.size());
  name.append(category).append(1, '-').append(key);
  if (!is_valid_category(category)) refuse(name, category_rule);
  const std::string_view rule = broken_key_rule(key);
  if (!rule.empty()) refuse(name, rule);
  return StreamId{std::move(name), category.size()};
}

StreamId StreamId::parse(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) refuse(name, "it has no '-' between category and key");
  return of(name.substr(0, dash), name.substr(dash + 1));
}

void check_stream_key(std::string_view key) {
  const std::string_view rule = broken_key_rule(key);
  if (!rule.empty()) {
    throw UsageError{"'" + shown(key) + "' can't be the key of a stream: " + std::string{rule}};
  }
}

}  // namespace stela
