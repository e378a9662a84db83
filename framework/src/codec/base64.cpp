#include <stela/framework/codec/detail/base64.hpp>

#include <cstddef>
#include <cstdint>

namespace stela::base64 {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t at) noexcept {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u;
}

/// 64 if `c` isn't in the alphabet.
std::uint32_t value_of(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return static_cast<std::uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<std::uint32_t>(c - 'a' + 26);
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0' + 52);
  if (c == '+') return 62;
  return c == '/' ? 63 : 64;
}

}  // namespace

void append(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t bits =
        byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);
    out += alphabet[bits >> 18];
    out += alphabet[bits >> 12 & 63];
    out += i + 1 < bytes.size() ? alphabet[bits >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? alphabet[bits & 63] : '=';
  }
}

bool decode(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.size() % 4 != 0) return false;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const bool is_padding = is_last && j >= 4 - padding;
      const std::uint32_t value = is_padding ? 0 : value_of(text[i + j]);
      if (value > 63) return false;
      bits = bits << 6 | value;
    }
    const std::size_t count = is_last ? 3 - padding : 3;
    for (std::size_t j = 0; j < 3; ++j) {
      const auto byte = static_cast<char>(bits >> (16 - 8 * j) & 0xff);
      if (j < count) bytes += byte;
      // Bits after the end must be zero, so that no two texts decode to the same bytes.
      if (j >= count && byte != 0) return false;
    }
  }
  return true;
}

}  // namespace stela::base64
