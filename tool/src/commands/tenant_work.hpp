// Work for all tenants: their relays and their runners.
#pragma once

#include "cli/invocation.hpp"

#include <stela/eventstore/tenants.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace stela::tool {

/// `outbox work` with a registry of tenants. Returns the exit code.
int relay_tenants(Invocation& call);
/// `projections run` with one.
int run_tenants(Invocation& call);
/// Messages published, or events read, by tenant. Those without a label are "other".
using TenantCounts = std::map<std::string, std::int64_t, std::less<>>;
/// What both serve at /metrics.
std::string metrics_text(const TenantsStanding& standing, const TenantCounts& done);

}  // namespace stela::tool
