// What goes wrong inside a codec, before anybody knows which event it was.
#pragma once

#include <stela/framework/export.hpp>

#include <stdexcept>
#include <string>

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

}  // namespace stela::codec
