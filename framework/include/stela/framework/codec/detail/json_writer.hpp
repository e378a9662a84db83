// Writes compact JSON values into a string, without the punctuation between them.
#pragma once

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/export.hpp>

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace stela::json {

/// Appends `text` in quotes. Escapes only what JSON requires. EncodeError if it isn't UTF-8.
STELA_FRAMEWORK_EXPORT void append_string(std::string& out, std::string_view text);
/// As append_string, but returns false if `text` isn't UTF-8; `out` is unspecified then.
[[nodiscard]] STELA_FRAMEWORK_EXPORT bool try_append_string(std::string& out,
                                                            std::string_view text);

/// Appends the shortest digits that give the same double when read. EncodeError if it isn't finite.
STELA_FRAMEWORK_EXPORT void append_double(std::string& out, double value);
STELA_FRAMEWORK_EXPORT void append_double(std::string& out, float value);
/// As append_double, but returns false, and appends nothing, if `value` isn't finite.
[[nodiscard]] STELA_FRAMEWORK_EXPORT bool try_append_double(std::string& out, double value);
[[nodiscard]] STELA_FRAMEWORK_EXPORT bool try_append_double(std::string& out, float value);

template <std::integral T>
void append_integer(std::string& out, T value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

inline void append_bool(std::string& out, bool value) {
  out += value ? "true" : "false";
}

/// True if `text` is printable ASCII without quotes and backslashes, so that JSON needs no escapes.
STELA_FRAMEWORK_EXPORT bool is_plain(std::string_view text) noexcept;

/// True if `text` is well-formed UTF-8.
STELA_FRAMEWORK_EXPORT bool is_utf8(std::string_view text) noexcept;

/// Writes one flat JSON object: `ObjectWriter{out}.add("a", 1).add("b", "x").close()`.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_{out} { out_ += '{'; }

  ObjectWriter& add(std::string_view name, std::string_view value) {
    append_string(key(name), value);
    return *this;
  }
  ObjectWriter& add(std::string_view name, const char* value) {
    return add(name, std::string_view{value});
  }
  ObjectWriter& add(std::string_view name, std::integral auto value) {
    if constexpr (std::same_as<decltype(value), bool>) {
      append_bool(key(name), value);
    } else {
      append_integer(key(name), value);
    }
    return *this;
  }
  ObjectWriter& add(std::string_view name, double value) {
    append_double(key(name), value);
    return *this;
  }
  /// Appends only the name. The caller appends the value to the returned string.
  std::string& key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    append_string(out_, name);
    out_ += ':';
    return out_;
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace stela::json
