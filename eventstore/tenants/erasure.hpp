// The end of a tenant: only what is its own is destroyed.
#pragma once

#include "tenants/registry.hpp"

namespace stela::tenants {

enum class Destroys : bool { store, store_and_keys };

/// What is the tenant's own: not its keys if they have moved to another registry. Throws as
/// `Tenants::erase` does if something else stands at its places. Nothing may stand there if
/// `may_be_missing`.
Destroys check_is_its_own(Registry& registry, const Registered& known, bool may_be_missing);

/// First its keys, because without them nobody reads what backups have of its people. StoreFailed
/// if that fails; repeat it then.
void destroy(Registry& registry, const Registered& known, Destroys what);

}  // namespace stela::tenants
