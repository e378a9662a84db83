// The OpenAPI description of the console's requests.
#pragma once

#include "console/commands.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Generated from the table of routes and their commands.
std::string openapi(const ConsoleCommands& commands, std::string_view version);

}  // namespace stela::tool
