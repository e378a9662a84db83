// outbox enable.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command enable_command();

}  // namespace stela::tool
