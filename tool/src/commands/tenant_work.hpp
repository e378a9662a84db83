// Work for all tenants: their relays and their runners.
#pragma once

#include "cli/invocation.hpp"

#include <stela/eventstore/tenants.hpp>

#include <cstdint>
#include <string>

namespace stela::tool {

/// `outbox work` with a registry of tenants. Returns the exit code.
int relay_tenants(Invocation& call);
/// `projections run` with one.
int run_tenants(Invocation& call);
/// What both serve at /metrics. `done`: messages published, or events read.
std::string metrics_text(const TenantsStanding& standing, std::int64_t done);

}  // namespace stela::tool
