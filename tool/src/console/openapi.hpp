// What programs may ask the console, as OpenAPI describes it.
#pragma once

#include "console/commands.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Made from the table of routes and the commands behind it.
std::string openapi(const ConsoleCommands& commands, std::string_view version);

}  // namespace stela::tool
