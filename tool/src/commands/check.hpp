// outbox check, for monitoring systems.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command check_command();

}  // namespace stela::tool
