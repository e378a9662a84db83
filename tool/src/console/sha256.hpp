// SHA-256, for tokens that are stored as hashes.
#pragma once

#include <string>
#include <string_view>

namespace stela::tool {

/// As 64 hexadecimal digits, like `sha256sum`.
std::string sha256(std::string_view text);

}  // namespace stela::tool
