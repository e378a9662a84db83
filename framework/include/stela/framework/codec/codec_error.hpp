// Errors inside a codec, before the event is known.
#pragma once

#include <stela/framework/export.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stela::codec {

/// A value that can't be encoded: a NaN, or text that isn't UTF-8. The caller turns it into a
/// UsageError that names the event.
class STELA_FRAMEWORK_EXPORT EncodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes that don't decode. The caller turns it into a CorruptEvent that names the event.
class STELA_FRAMEWORK_EXPORT DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The position of an error in a payload: "lines[1].price".
class STELA_FRAMEWORK_EXPORT PathText {
 public:
  void add_member(std::string_view name);
  void add_element(std::size_t index);
  /// The whole path, or "the payload" if it has no steps.
  std::string text() const;

 private:
  std::string text_;
};

/// The name of a field that has none: "value0", "value1", …
STELA_FRAMEWORK_EXPORT std::string unnamed_field(std::size_t number);

}  // namespace stela::codec
