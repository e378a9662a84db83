// Tenants: a store for each of them, opened while it is used, and a registry that knows them all.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/detail/not_found.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

namespace stela {
namespace tenants {
class Mark;
class OpenStore;
class Registry;
class StorePool;
}  // namespace tenants

enum class TenantState : std::uint8_t {
  active,
  /// Appends are refused, and pending messages are published.
  suspended,
  /// As suspended, until it is erased. `resume` takes it back.
  dropped,
  /// Its keys and its store are being destroyed. If that was interrupted, repeat `erase`.
  erasing,
  /// Its store is gone. The name is never used again.
  erased,
};

STELA_EVENTSTORE_EXPORT std::string_view to_string(TenantState state) noexcept;

struct Tenant {
  std::string name = {};
  TenantState state = TenantState::active;
  /// The ids of its store, and of the registry that knows it.
  Uuid store = {};
  Uuid registry = {};
  Timestamp created_at = {};
  /// Since when it is in this state, and why.
  Timestamp since = {};
  std::string reason = {};
  /// For a dropped tenant: it isn't erased before.
  Timestamp erase_from = {};
};

struct TenantsOptions {
  // Facts of the registry, set when it is made. For an existing registry, leave them out or state
  // the present values: UsageError if they differ. A path that isn't absolute begins at the folder
  // of the registry.
  /// Where the stores are: "data/{tenant}.db". With the URL of a database on a server, each tenant
  /// has a schema of it, "tenant_{tenant}".
  std::optional<std::string> at = {};
  /// Where each tenant's key store is, a file, for stores with personal fields:
  /// "keys/{tenant}.keys".
  std::optional<std::string> keys = {};

  /// Makes the registry if it is missing.
  bool create = true;
  /// The most stores that are open at once. When all of them are in use, `use` waits for as long
  /// as `files.busy_timeout`, then StoreBusy. Not set: 200 files, or 20 schemas, as each open one
  /// has connections of its own.
  std::optional<int> most_open = {};
  /// How long a store stays open after its last use.
  std::chrono::milliseconds close_after{60'000};
  /// Migrates older stores when they are opened. By default that is an operator's act, because a
  /// migration may shut out processes of an older version: SchemaMismatch.
  bool migrate = false;
  /// For all tenants' key stores, as in KeyOptions; the file of erasures may be one for all. Not
  /// set: each has files of its own beside it.
  std::optional<MasterKey> master = {};
  std::string erasures = {};
  /// The actor of changes to the registry.
  std::string who = {};
  /// How the stores and the registry are opened. `create`, `migrate`, `keys` and `schema` don't
  /// matter here. UsageError if `sql_schema` names one, as each tenant has its own.
  sqlite::Options files = {};
  postgres::Options servers = {};
};

/// The state of work that serves many tenants.
struct TenantsStanding {
  struct Trouble {
    std::string tenant;
    std::string what;
  };
  /// The tenants that it serves; those of them that were asked since it began, and that answered.
  std::int64_t tenants = 0;
  std::int64_t asked = 0;
  std::int64_t answered = 0;
  /// Those that it works for now, and that wait for their turn.
  std::int64_t served = 0;
  std::int64_t waiting = 0;
  /// What stands still, and why.
  std::vector<Trouble> troubles = {};
};

/// A tenant's store, kept open as long as this handle exists. `Tenants` must outlive it. Threads:
/// one at a time; any number of handles.
class STELA_EVENTSTORE_EXPORT TenantStore {
 public:
  ~TenantStore();
  TenantStore(TenantStore&&) noexcept;
  TenantStore& operator=(TenantStore&&) noexcept;

  const std::string& name() const noexcept;
  Store& store() const noexcept;
  Store& operator*() const noexcept { return store(); }
  Store* operator->() const noexcept { return &store(); }
  /// The tenant's keys. Null if the registry has no place of key stores.
  Keys* keys() const noexcept;

  /// An object that lives with the open store, such as its Outbox or its Projections: made at its
  /// first use, and shared by all handles.
  template <class T, class... Args>
  T& keep(Args&&... args) {
    return keep_as<T>(
        [&](Store& store) { return std::make_shared<T>(store, std::forward<Args>(args)...); });
  }
  /// The same, made by `make`, which takes a Store& and returns a std::shared_ptr<T>.
  template <class T, class Make>
  T& keep_as(Make&& make) {
    return *static_cast<T*>(
        keep_any(typeid(T), [&](Store& store) -> std::shared_ptr<void> { return make(store); }));
  }

 private:
  friend class Tenants;
  friend class tenants::StorePool;
  explicit TenantStore(std::shared_ptr<tenants::OpenStore> open) noexcept;
  void* keep_any(std::type_index type, FunctionRef<std::shared_ptr<void>(Store&)> make);

  std::shared_ptr<tenants::OpenStore> open_;
};

/// The tenants of an application. Each has a store of its own, so order, erasure, backup and limits
/// are a store's. A store belongs to one tenant of one registry: opened by another name, or without
/// `Tenants`, it takes no appends.
///
/// Processes that share a registry know of each other's changes at the next call that names the
/// tenant, at most a tenth of a second late. Don't move it while handles, relays or runners use it.
/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Tenants {
 public:
  ~Tenants();
  Tenants(Tenants&&) noexcept;
  Tenants& operator=(Tenants&&) noexcept;

  /// Called for each store when it is opened, before anybody uses it: for what takes part in its
  /// appends. UsageError while a store is in use.
  void furnish(std::function<void(TenantStore&)> furnish);

  /// The tenant's store. NotFound if the tenant isn't registered or is erased; nothing is created.
  /// StoreBusy if too many stores are in use. Otherwise as `open` of its engine.
  TenantStore use(std::string_view name);

  /// Makes the store, then registers it. UsageError if the name isn't valid ("a" to "z", digits,
  /// '_' and '-', at most 39 of them, beginning with a letter or a digit), is reserved, or was used
  /// before.
  Tenant create(std::string_view name);
  /// Refuses appends to its store, in all processes, with StoreSuspended, which says why. Nobody
  /// can be forgotten in it meanwhile. NotFound as for `use`; UsageError without a reason.
  Tenant suspend(std::string_view name, std::string_view reason);
  /// Takes back `suspend`, and `drop`.
  Tenant resume(std::string_view name);
  /// As `suspend`, until `erase`, which is possible after `grace`. Repeat it to change that.
  Tenant drop(std::string_view name, std::string_view reason, std::chrono::seconds grace);
  /// Destroys the store and the keys of a dropped tenant: its events are gone. Calls of processes
  /// that have them open fail. Repeat it if it was interrupted. UsageError before `erase_from`.
  /// Nothing is destroyed, and an Error thrown, if what stands at its places
  /// is another's, can't be read, has more than one name, or is missing, as on a disk that isn't
  /// mounted; unless `is_lost`, which takes what is missing as gone for good. What all tenants
  /// share stays.
  Tenant erase(std::string_view name, bool is_lost = false);
  /// Registers stores that stand where this registry's stores stand and bear a tenant's name, but
  /// aren't registered: after the loss of a registry. They stay suspended if they were. Those that
  /// another registry knows are left out and logged, unless this one takes them over. Returns their
  /// names.
  std::vector<std::string> adopt_all(bool takes_over = false);
  /// Registers the store at this tenant's place, also if it bears no name, as after an import.
  /// Its key store must be at its place; it gets one if it never had one. UsageError if it bears
  /// another name, is another registry's and isn't taken over, or the name was used before; but a
  /// registered tenant whose store another registry has taken over is taken back.
  Tenant adopt(std::string_view name, bool takes_over = false);

  std::optional<Tenant> find(std::string_view name);
  /// All tenants by name, also erased ones.
  std::vector<Tenant> list();

  /// Where the tenant's store is: a path, or a URL, whose schema is `schema_of`.
  std::string place_of(std::string_view name) const;
  std::string schema_of(std::string_view name) const;
  /// Where its key store is; empty if the registry has no `keys`.
  std::string keys_of(std::string_view name) const;

  // For the modules of Stela.
  tenants::Registry& registry() const noexcept { return *registry_; }
  tenants::StorePool& pool() const noexcept { return *pool_; }

 private:
  friend STELA_EVENTSTORE_EXPORT Tenants open_tenants(const std::string& location,
                                                      const TenantsOptions& options);
  Tenants(const std::string& location, const TenantsOptions& options);

  Tenant change(std::string_view name, FunctionRef<Tenant(const Tenant&)> work);

  std::unique_ptr<tenants::Registry> registry_;
  std::unique_ptr<tenants::StorePool> pool_;
};

/// Whether this is the tenant's store, and no other registry has taken it over.
STELA_EVENTSTORE_EXPORT bool is_store_of(const Tenant& tenant, Store& store);

/// Lets a program append to a tenant's store that it opened by itself, as a tool does. Does nothing
/// for a store that is no tenant's. The store must outlive it. Threads: one at a time.
class STELA_EVENTSTORE_EXPORT TenantMembership {
 public:
  explicit TenantMembership(Store& store);
  ~TenantMembership();
  TenantMembership(const TenantMembership&) = delete;
  TenantMembership& operator=(const TenantMembership&) = delete;

 private:
  Store& store_;
  std::unique_ptr<tenants::Mark> mark_;
};

/// Opens the registry at `location`, which is a store of its own: a file, or the URL of a server,
/// where it has the schema "stela_tenants". UsageError if it is new and `at` is missing, or if the
/// system allows too few open files for `most_open` stores.
STELA_EVENTSTORE_EXPORT Tenants open_tenants(const std::string& location,
                                             const TenantsOptions& options = {});

}  // namespace stela
