// `projections check`, for monitoring systems.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command projections_check_command();

}  // namespace stela::tool
