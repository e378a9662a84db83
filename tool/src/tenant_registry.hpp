// The registry of tenants that a command names.
#pragma once

#include "cli/arguments.hpp"
#include "cli/invocation.hpp"
#include "cli/settings.hpp"

#include <stela/eventstore/tenants.hpp>

namespace stela::tool {

/// Sets the database, the schema and the key store to those of the setting "tenant". Misuse if no
/// registry is named, or another database is; Exit 3 if the tenant doesn't exist. Returns the
/// tenant.
Tenant settle_tenant(Settings& settings, const Arguments& arguments);

/// True if a command serves all tenants: a registry is named, and neither a tenant nor a database.
/// Misuse if it doesn't, and --label was given.
bool serves_all_tenants(Invocation& call);

/// The registry of `--tenants`, with the stores' options of the configuration. Misuse if none was
/// given.
Tenants open_registry(Invocation& call, TenantsOptions options);

}  // namespace stela::tool
