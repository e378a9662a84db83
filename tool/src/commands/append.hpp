// events append.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command append_command();

}  // namespace stela::tool
