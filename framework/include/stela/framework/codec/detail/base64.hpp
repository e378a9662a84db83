// Bytes as text: RFC 4648, the standard alphabet with padding.
#pragma once

#include <stela/framework/export.hpp>

#include <string>
#include <string_view>

namespace stela::base64 {

STELA_FRAMEWORK_EXPORT void append(std::string& out, std::string_view bytes);

/// False if `text` isn't what `append` writes.
STELA_FRAMEWORK_EXPORT bool decode(std::string_view text, std::string& bytes);

}  // namespace stela::base64
