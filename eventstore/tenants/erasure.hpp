// The end of a tenant: only what is its own is destroyed.
#pragma once

#include "tenants/registry.hpp"

namespace stela::tenants {

/// Throws as `Tenants::erase` does if what stands at the tenant's places isn't its own. Nothing may
/// stand there if `may_be_missing`.
void check_is_its_own(Registry& registry, const Registered& known, bool may_be_missing);

/// Destroys what `check_is_its_own` accepted: first its keys, because without them nobody reads
/// what backups have of its people. StoreFailed if that fails; repeat it then.
void destroy(Registry& registry, const Registered& known);

}  // namespace stela::tenants
