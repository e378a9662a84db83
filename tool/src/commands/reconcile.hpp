// outbox reconcile.
#pragma once

#include "cli/command.hpp"

namespace stela::tool {

Command reconcile_command();

}  // namespace stela::tool
