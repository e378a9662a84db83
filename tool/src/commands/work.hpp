// outbox work: the worker.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command work_command();

}  // namespace stela::tool
