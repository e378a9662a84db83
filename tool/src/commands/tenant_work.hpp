// Work for all tenants: their relays and their runners.
#pragma once

#include "cli/invocation.hpp"

namespace stela::tool {

/// `outbox work` with a registry of tenants. Returns the exit code.
int relay_tenants(Invocation& call);
/// `projections run` with one.
int run_tenants(Invocation& call);

}  // namespace stela::tool
