// doctor: what may be wrong with a database and the world around it.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command doctor_command();

}  // namespace stela::tool
