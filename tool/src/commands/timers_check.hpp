// `timers check`, for monitoring systems.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command timers_check_command();

}  // namespace stela::tool
