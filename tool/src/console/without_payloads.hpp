// Takes out of JSON what applications have put into it.
#pragma once

#include <string>
#include <string_view>

namespace stela::tool {

/// The same JSON, with null for payloads, states, metadata and headers, wherever they stand.
std::string without_payloads(std::string_view json);

}  // namespace stela::tool
