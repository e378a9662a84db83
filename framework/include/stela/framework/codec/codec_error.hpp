// What goes wrong inside a codec, before anybody knows which event it was.
#pragma once

#include <stela/framework/export.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stela::codec {

/// A value that can't be written: a NaN, text that isn't UTF-8. The caller turns it into a
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

/// Where in a payload something is wrong: "lines[1].price".
class STELA_FRAMEWORK_EXPORT PathText {
 public:
  void add_member(std::string_view name);
  void add_element(std::size_t index);
  /// The whole path; "the payload" if there are no steps.
  std::string text() const;

 private:
  std::string text_;
};

/// What a field without a name is called: "value0", "value1", …
STELA_FRAMEWORK_EXPORT std::string unnamed_field(std::size_t number);

}  // namespace stela::codec
