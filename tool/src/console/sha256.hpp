// SHA-256, for tokens that are kept as their hash.
#pragma once

#include <string>
#include <string_view>

namespace stela::tool {

/// In 64 hexadecimal digits, as `sha256sum` prints it.
std::string sha256(std::string_view text);

}  // namespace stela::tool
