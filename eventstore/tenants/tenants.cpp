#include <stela/eventstore/tenants.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include "database/database.hpp"
#include "tenants/erasure.hpp"
#include "tenants/places.hpp"
#include "tenants/pool.hpp"
#include "tenants/registry.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace stela {

using tenants::Opening;
using tenants::OpenStore;
using tenants::Registered;
using tenants::Registry;
using tenants::StorePool;

namespace {

using namespace std::chrono_literals;

/// What a store and its relay or runner may have open at once, and what the rest of a process has.
constexpr rlim_t files_of_a_store = 16;
constexpr rlim_t files_of_a_process = 64;
constexpr auto longest_grace = 24h * 36'525;

/// Raises the limit of open files as far as it may be raised.
void allow_open_stores(int most_open) {
  if (most_open < 1) throw UsageError{"most_open is at least 1"};
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = files_of_a_process + files_of_a_store * static_cast<rlim_t>(most_open);
  if (limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < wanted) {
    throw UsageError{"this process may have " + std::to_string(limit.rlim_max) +
                     " files open, and most_open = " + std::to_string(most_open) + " needs " +
                     std::to_string(wanted) + "; lower it, or raise the limit (LimitNOFILE=)"};
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void refuse_state(const Tenant& tenant, const char* what) {
  throw UsageError{"tenant '" + tenant.name + "' is " + std::string{to_string(tenant.state)} +
                   ", and can't be " + what};
}

[[noreturn]] void refuse_used(const Tenant& known) {
  throw UsageError{"the name '" + known.name + "' belongs to a tenant that is " +
                   std::string{to_string(known.state)} + "; a name is never used twice"};
}

}  // namespace

std::string_view to_string(TenantState state) noexcept {
  switch (state) {
    case TenantState::active:
      return "active";
    case TenantState::suspended:
      return "suspended";
    case TenantState::dropped:
      return "dropped";
    case TenantState::erasing:
      return "erasing";
    case TenantState::erased:
      return "erased";
  }
  return "unknown";
}

TenantStore::TenantStore(std::shared_ptr<OpenStore> open) noexcept : open_{std::move(open)} {}
TenantStore::~TenantStore() = default;
TenantStore::TenantStore(TenantStore&&) noexcept = default;
TenantStore& TenantStore::operator=(TenantStore&&) noexcept = default;

const std::string& TenantStore::name() const noexcept {
  return open_->name();
}
Store& TenantStore::store() const noexcept {
  return open_->store();
}
Keys* TenantStore::keys() const noexcept {
  return open_->keys();
}
void* TenantStore::keep_any(std::type_index type, FunctionRef<std::shared_ptr<void>(Store&)> make) {
  return open_->keep(type, make);
}

Tenants open_tenants(const std::string& location, const TenantsOptions& options) {
  return {location, options};
}

Tenants::Tenants(const std::string& location, const TenantsOptions& options) {
  if (options.servers.sql_schema) {
    throw UsageError{
        "servers.sql_schema would be the same for all tenants, and each has its own, "
        "tenant_NAME_app; leave it out"};
  }
  if (options.most_open) allow_open_stores(*options.most_open);
  registry_ = std::make_unique<Registry>(location, options);
  allow_open_stores(registry_->most_open());
  pool_ = std::make_unique<StorePool>(*registry_);
}
Tenants::~Tenants() = default;
Tenants::Tenants(Tenants&&) noexcept = default;
Tenants& Tenants::operator=(Tenants&&) noexcept = default;

void Tenants::furnish(std::function<void(TenantStore&)> furnish) {
  pool_->furnish(std::move(furnish));
}

TenantStore Tenants::use(std::string_view name) {
  const Registered known = registry_->get(name);
  if (known.tenant.state >= TenantState::erasing) {
    throw NotFound{"tenant '" + known.tenant.name + "' is no longer there (" +
                   std::string{to_string(known.tenant.state)} + " since " +
                   to_string(known.tenant.since) + ")"};
  }
  return pool_->use(known, Opening::existing);
}

Tenant Tenants::create(std::string_view name) {
  tenants::check_name(name);
  if (const auto known = registry_->find(name)) refuse_used(known->tenant);
  // Its store first: what is registered has one.
  const Registered wanted{.tenant = {.name = std::string{name}}};
  if (registry_->stores().is_on_server()) {
    tenants::check_schemas(registry_->stores().text(), name);
  }
  const TenantStore made = pool_->use(wanted, Opening::new_store);
  return registry_->create(name, made->id(), made.open_->key_files());
}

Tenant Tenants::change(std::string_view name, FunctionRef<Tenant(const Tenant&)> work) {
  const Registered known = registry_->get(name);
  if (known.tenant.state >= TenantState::erasing) refuse_state(known.tenant, "changed");
  // The registry first: a process that opens the store then settles its state.
  const Tenant changed = work(known.tenant);
  try {
    tenants::settle(*registry_, registry_->get(name));
  } catch (const Error& e) {
    throw Error{e.code(), std::string{e.what()} +
                              "; the registry has the change, and the store doesn't: repeat it "
                              "when the store is well"};
  }
  return changed;
}

Tenant Tenants::suspend(std::string_view name, std::string_view reason) {
  if (reason.empty()) throw UsageError{"a reason is needed: callers are told"};
  return change(name, [&](const Tenant& tenant) {
    if (tenant.state == TenantState::suspended && tenant.reason == reason) return tenant;
    if (tenant.state > TenantState::suspended) refuse_state(tenant, "suspended");
    return registry_->suspend(name, reason);
  });
}

Tenant Tenants::resume(std::string_view name) {
  return change(name, [&](const Tenant& tenant) {
    if (tenant.state == TenantState::active) return tenant;
    // Nothing changes if another store stands in its place; a missing one may come back.
    try {
      tenants::open_own(*registry_, registry_->get(name).tenant);
    } catch (const StoreFailed&) {
    } catch (const StoreBusy&) {
    } catch (const NotFound&) {
    }
    return registry_->resume(name);
  });
}

Tenant Tenants::drop(std::string_view name, std::string_view reason, std::chrono::seconds grace) {
  if (reason.empty() || grace < 0s || grace > longest_grace) {
    throw UsageError{"a reason is needed, and a grace of 0 to 36525 days"};
  }
  return change(name, [&](const Tenant&) {
    const Timestamp now = registry_->store().conventions().clock->now();
    return registry_->drop(name, reason, now + grace);
  });
}

Tenant Tenants::erase(std::string_view name, bool is_lost) {
  const Registered known = registry_->get(name);
  const Tenant& tenant = known.tenant;
  if (tenant.state < TenantState::dropped) refuse_state(tenant, "erased; drop it first");
  const bool is_begun = tenant.state > TenantState::dropped;
  if (!is_begun && registry_->store().conventions().clock->now() < tenant.erase_from) {
    throw UsageError{"tenant '" + tenant.name + "' isn't erased before " +
                     to_string(tenant.erase_from)};
  }
  pool_->close(name);
  const auto own = tenants::check_is_its_own(*registry_, known, is_lost || is_begun);
  if (!is_begun) registry_->begin_erasing(name);
  tenants::destroy(*registry_, known, own);
  return tenant.state == TenantState::erased ? tenant : registry_->end_erasing(name);
}

std::vector<std::string> Tenants::adopt_all(bool takes_over) {
  std::vector<std::string> adopted;
  for (const std::string& name : tenants::names_at(registry_->stores())) {
    if (registry_->find(name)) continue;
    try {
      tenants::check_name(name);
      Store store = tenants::open_to_read(*registry_, name);
      if (tenants::read_marks(store).tenant != name) continue;
      adopted.push_back(adopt(name, takes_over).name);
    } catch (const Error& e) {
      const std::string message = "the store of '" + name + "' isn't adopted: " + e.what();
      registry_->options().files.log->write(
          {.level = LogLevel::warning, .name = "tenants.not_adopted", .message = message});
    }
  }
  return adopted;
}

Tenant Tenants::adopt(std::string_view name, bool takes_over) {
  tenants::check_name(name);
  const auto known = registry_->find(name);
  if (known && (!takes_over || known->tenant.state >= TenantState::erasing)) {
    refuse_used(known->tenant);
  }
  const Registered wanted = known.value_or(Registered{.tenant = {.name = std::string{name}}});
  pool_->close(name);
  TenantStore store = pool_->use(wanted, takes_over ? Opening::taken_over : Opening::adopted);
  if (known) {
    tenants::settle(*registry_, *known);
    return known->tenant;
  }
  const Tenant adopted = registry_->create(name, store->id(), store.open_->key_files());
  const std::string suspension = tenants::read_marks(store.store()).suspension;
  return suspension.empty() ? adopted : registry_->suspend(name, "its store says: " + suspension);
}

bool is_store_of(const Tenant& tenant, Store& store) {
  return store.id() == tenant.store &&
         tenants::read_marks(store).mark == tenants::mark_of(tenant.registry, tenant.name);
}

TenantMembership::TenantMembership(Store& store) : store_{store.anchor()} {
  const std::string mark = tenants::read_marks(store).mark;
  if (mark.empty()) return;
  mark_ = std::make_unique<tenants::Mark>(mark);
  store_.database().attach_mark(*mark_);
}
TenantMembership::~TenantMembership() {
  if (mark_) store_.database().detach_mark(*mark_);
}

std::optional<Tenant> Tenants::find(std::string_view name) {
  const auto known = registry_->find(name);
  return known ? std::optional{known->tenant} : std::nullopt;
}
std::vector<Tenant> Tenants::list() {
  return registry_->list();
}

std::string Tenants::place_of(std::string_view name) const {
  return registry_->stores().place_of(name);
}
std::string Tenants::schema_of(std::string_view name) const {
  return registry_->stores().is_on_server() ? tenants::schema_of(name) : std::string{};
}
std::string Tenants::keys_of(std::string_view name) const {
  return registry_->keys() ? registry_->keys()->place_of(name) : std::string{};
}

}  // namespace stela
