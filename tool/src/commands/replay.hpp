// projections replay and rebuild.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command replay_command();
Command rebuild_command();

}  // namespace stela::tool
