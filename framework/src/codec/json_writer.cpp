#include <stela/framework/codec/detail/json_writer.hpp>

#include <simdjson.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace stela::json {
namespace {

bool needs_escape(unsigned char byte) {
  return byte < 0x20 || byte == '"' || byte == '\\';
}

void append_escaped(std::string& out, unsigned char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  constexpr char digits[] = "0123456789abcdef";
  out += "\\u00";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

template <class T>
bool try_append_number(std::string& out, T value) {
  if (!std::isfinite(value)) return false;
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return true;
}

template <class T>
void append_number(std::string& out, T value) {
  if (!try_append_number(out, value)) {
    throw codec::EncodeError{"a number isn't finite (NaN or infinity), which JSON can't hold"};
  }
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  return simdjson::validate_utf8(text.data(), text.size());
}

bool is_plain(std::string_view text) noexcept {
  // Checks eight bytes at a time. The first byte that isn't plain gets its highest bit set, because
  // one of the differences underflows. The borrow may also set the bits of later bytes.
  constexpr std::uint64_t each = 0x0101010101010101;
  constexpr std::uint64_t high = 0x80 * each;
  const auto unusual = [&](std::uint64_t bytes) {
    return bytes | (bytes - ' ' * each) | ((bytes ^ ('"' * each)) - each) |
           ((bytes ^ ('\\' * each)) - each) | ((bytes ^ (0x7f * each)) - each);
  };
  std::uint64_t found = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t bytes;
    std::memcpy(&bytes, text.data() + i, 8);
    found |= unusual(bytes);
  }
  std::uint64_t rest = 'x' * each;
  if (i < text.size()) std::memcpy(&rest, text.data() + i, text.size() - i);
  return ((found | unusual(rest)) & high) == 0;
}

void append_string(std::string& out, std::string_view text) {
  if (!try_append_string(out, text)) throw codec::EncodeError{"a text isn't valid UTF-8"};
}

bool try_append_string(std::string& out, std::string_view text) {
  out += '"';
  if (is_plain(text)) {
    out += text;
    out += '"';
    return true;
  }
  std::size_t copied = 0;
  bool ascii = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    ascii = ascii && byte < 0x80;
    if (!needs_escape(byte)) continue;
    out.append(text, copied, i - copied);
    append_escaped(out, byte);
    copied = i + 1;
  }
  out.append(text, copied);
  out += '"';
  return ascii || is_utf8(text);
}

void append_double(std::string& out, double value) {
  append_number(out, value);
}
void append_double(std::string& out, float value) {
  append_number(out, value);
}

bool try_append_double(std::string& out, double value) {
  return try_append_number(out, value);
}
bool try_append_double(std::string& out, float value) {
  return try_append_number(out, value);
}

}  // namespace stela::json
