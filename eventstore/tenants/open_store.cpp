#include "tenants/open_store.hpp"

#include "database/database.hpp"
#include "forgotten_keys.hpp"
#include "keys/key_database.hpp"
#include "ledger/participants.hpp"
#include "tenants/places.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>

#include <charconv>
#include <filesystem>
#include <utility>

namespace stela::tenants {
namespace {

void make_folder_of(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), error);
  if (error) throw StoreFailed{"making the folder of '" + path + "' failed: " + error.message()};
}

std::optional<Keys> open_keys_of(Registry& registry, const std::string& tenant, bool is_new) {
  if (!registry.keys()) return std::nullopt;
  const std::string place = registry.keys()->place_of(tenant);
  if (is_new) make_folder_of(place);
  const TenantsOptions& all = registry.options();
  return open_keys(place, {.master = all.master.value_or(MasterKey{}),
                           .erasures = all.erasures,
                           .create = is_new,
                           .busy_timeout = all.files.busy_timeout,
                           .log = all.files.log,
                           .clock = all.files.clock});
}

enum class Access : std::uint8_t { create, write, read };

Store open_store_of(Registry& registry, std::string_view tenant, Access access, Keyring* keys) {
  const TenantsOptions& all = registry.options();
  const std::string place = registry.stores().place_of(tenant);
  const auto prepare = [&](auto options) {
    options.create = access == Access::create;
    options.read_only = access == Access::read;
    options.migrate = all.migrate;
    options.keys = keys;
    return options;
  };
  if (registry.stores().is_on_server()) {
    postgres::Options options = prepare(all.servers);
    options.schema = schema_of(tenant);
    options.sql_schema = sql_schema_of(tenant);
    return postgres::open(place, options);
  }
  if (access == Access::create) make_folder_of(place);
  return sqlite::open(place, prepare(all.files));
}

constexpr std::string_view of_registry = ", of the registry ";
constexpr std::string_view last_change = ", change ";

}  // namespace

std::string why_suspended(const Tenant& tenant) {
  std::string why = "tenant '" + tenant.name + "' is ";
  why += to_string(tenant.state);
  why += " since " + to_string(tenant.since);
  return tenant.reason.empty() ? why : why + ": " + tenant.reason;
}

Store open_to_read(Registry& registry, std::string_view tenant) {
  return open_store_of(registry, tenant, Access::read, nullptr);
}

std::string mark_of(const Uuid& registry, const std::string& tenant) {
  return tenant + std::string{of_registry} + registry.to_string();
}

Marked read_marks(Store& store) {
  Marked marked;
  for (const auto& required : StoreOperations{store}.required_participants()) {
    if (required.name == "tenant") {
      const std::size_t end = required.detail.find(last_change);
      marked.mark = required.detail.substr(0, end);
      if (end != std::string::npos) {
        const std::string_view change =
            std::string_view{required.detail}.substr(end + last_change.size());
        std::from_chars(change.data(), change.data() + change.size(), marked.change);
      }
    }
    if (required.name == "tenants") marked.is_registry = true;
    if (required.name == ledger::suspension) marked.suspension = required.detail;
  }
  marked.tenant = marked.mark.substr(0, marked.mark.find(of_registry));
  return marked;
}

bool Mark::accepts(std::string_view recorded) const noexcept {
  if (!recorded.starts_with(detail_)) return false;
  recorded.remove_prefix(detail_.size());
  return recorded.empty() || recorded.starts_with(last_change);
}

std::string_view Suspension::name() const noexcept {
  return ledger::suspension;
}

namespace {

/// What is known of a store that isn't registered.
struct Standing {
  bool is_there = false;
  /// This registry has begun to make it.
  bool is_being_made = false;
  /// The key store that it was opened with.
  std::optional<Uuid> keys = {};
  /// It has no events, and isn't marked as a tenant's.
  bool is_blank = false;
};

Standing standing_of(Registry& registry, const std::string& tenant, Opening opening) {
  Standing standing{.is_there = has_store(registry.stores(), tenant)};
  if (!standing.is_there) return standing;
  try {
    Store store = open_to_read(registry, tenant);
    const std::string known = read_marks(store).mark;
    standing.is_being_made = known == mark_of(registry.store().id(), tenant);
    standing.keys = key_store_of(store);
    standing.is_blank = known.empty() && store.last_sequence().value() == 0;
  } catch (const Error& e) {
    if (opening != Opening::new_store || e.is_retryable()) throw;
    // Its making was interrupted, or it is no store: making it tells.
    standing.is_being_made = true;
  }
  return standing;
}

/// Before anything is made for a store that isn't registered. UsageError if its key store isn't at
/// its place, or another one may be, or another tenant's.
void check_keys_of(Registry& registry, const std::string& tenant, const Standing& store,
                   Opening opening) {
  if (!registry.keys()) {
    if (!store.keys) return;
    throw UsageError{"the store of tenant '" + tenant + "' has the key store " +
                     store.keys->to_string() +
                     ", and this registry has no place for key stores: make it with one "
                     "(--keys-at)"};
  }
  const std::string place = registry.keys()->place_of(tenant);
  const keys::Identity actual =
      std::filesystem::exists(place) ? keys::read_identity(place) : keys::Identity{};
  // Its making may have been interrupted.
  const bool is_there = !actual.id.is_nil();
  if (store.keys && actual.id != *store.keys) {
    throw UsageError{"the store of tenant '" + tenant + "' has the key store " +
                     store.keys->to_string() + ": put that at '" + place +
                     "', with its master key and its erasures"};
  }
  const bool is_others = !actual.serves.empty() && actual.serves != registry.served_as(tenant);
  if (is_others && store.keys && opening == Opening::adopted) {
    throw UsageError{"the key store at '" + place + "' is that of " + actual.serves +
                     "; if that is lost, or the tenant has moved here, take it over (--take-over)"};
  }
  if (store.keys || !is_there || (store.is_being_made && !is_others)) return;
  throw UsageError{"the key store at '" + place + "' is that of " +
                   (is_others ? actual.serves : "an unknown store") + ", not of tenant '" + tenant +
                   "'; keep the tenants' key stores of each registry in a place of their own"};
}

/// UsageError unless the tenant's store is this registry's.
void attach_own(Store& store, Mark& own, const std::string& tenant) try {
  store.database().attach_mark(own);
} catch (const UsageError& e) {
  throw UsageError{std::string{e.what()} + "; unless it has moved there, 'tenants adopt " + tenant +
                   " --take-over' takes it back"};
}

void check_is_registered(const Store& store, const Tenant& tenant) {
  if (store.id() == tenant.store) return;
  throw SchemaMismatch{"the store of tenant '" + tenant.name + "' has the id " +
                       store.id().to_string() + ", and the registry knows " +
                       tenant.store.to_string() +
                       ": another store stands in its place; put the right one back"};
}

/// What the store knows already stays, also if the registry, from an older backup, doesn't.
void settle_store(Store& store, const Registered& known, const Marked& marked) {
  const std::int64_t change = known.version.value();
  if (change <= marked.change) return;
  const Suspension suspension{why_suspended(known.tenant)};
  if (known.tenant.state != TenantState::active) {
    store.database().require_mark(suspension);
  } else if (!marked.suspension.empty()) {
    store.forget_participant(ledger::suspension);
  }
  store.database().require_mark(
      Mark{marked.mark + std::string{last_change} + std::to_string(change)});
}

}  // namespace

OpenStore::OpenStore(Registry& registry, const Registered& known, Opening opening)
    : name_{known.tenant.name}, mark_{mark_of(registry.store().id(), name_)} {
  const bool is_new = opening == Opening::new_store;
  if (opening != Opening::existing) prepare(registry, opening);
  keys_ = open_keys_of(registry, name_, opening != Opening::existing);
  if (keys_) settle_keys(registry, known.keys, opening);
  store_.emplace(open_store_of(registry, name_, is_new ? Access::create : Access::write,
                               keys_ ? &*keys_ : nullptr));
  if (opening == Opening::existing) check_is_registered(*store_, known.tenant);
  if (opening >= Opening::adopted) adopt(known, opening == Opening::taken_over);
  attach_own(*store_, mark_, name_);
  if (keys_ && opening != Opening::existing) {
    keys::set_serves(registry.keys()->place_of(name_), registry.served_as(name_));
  }
  if (opening == Opening::existing) settle_store(*store_, known, read_marks(*store_));
}

void OpenStore::prepare(Registry& registry, Opening opening) {
  const Standing standing = standing_of(registry, name_, opening);
  const std::string place = registry.stores().place_of(name_);
  if (opening == Opening::new_store && standing.is_there && !standing.is_being_made) {
    throw UsageError{"there is a store at '" + place + "' already; register it by 'adopt'"};
  }
  if (opening != Opening::new_store && !standing.is_there) {
    throw NotFound{"there is no store at '" + place + "' that could be adopted"};
  }
  if (opening != Opening::new_store && standing.is_blank) {
    throw UsageError{"the store at '" + place +
                     "' has no events: import them first; if there are none, remove it, and "
                     "'create' makes it anew"};
  }
  check_keys_of(registry, name_, standing, opening);
  if (opening != Opening::new_store) return;
  // The store first: a key store without one is nobody's.
  Store made = open_store_of(registry, name_, Access::create, nullptr);
  if (made.last_sequence().value() > 0) {
    throw UsageError{"'" + place + "' has events already; register it by 'adopt'"};
  }
  attach_own(made, mark_, name_);
  made.database().detach_mark(mark_);
}

void OpenStore::settle_keys(Registry& registry, const KeyFiles& known, Opening opening) {
  const KeyStanding standing = keys_->standing();
  const std::string of = "the key store at the place of tenant '" + name_ + "' is ";
  if (opening == Opening::existing) {
    if (standing.id != known.id) throw SchemaMismatch{of + "another's: put its own one there"};
    // A moved registry is the same one.
    if (!standing.serves.empty() && !standing.serves.starts_with(mark_.detail())) {
      throw UsageError{of + "that of " + standing.serves +
                       "; unless it has moved there, 'tenants adopt " + name_ +
                       " --take-over' takes it back"};
    }
  } else if (opening == Opening::new_store && standing.highest > 0) {
    throw SchemaMismatch{of + "another's: move it away"};
  }
  key_files_ = {.id = standing.id, .has_own_master = !registry.options().master.has_value()};
}

void OpenStore::adopt(const Registered& known, bool takes_over) {
  const Marked marked = read_marks(*store_);
  const std::string what = "the store at the place of tenant '" + name_ + "' is ";
  if (marked.is_registry) throw UsageError{what + "a registry of tenants"};
  if (!marked.tenant.empty() && marked.tenant != name_) {
    throw UsageError{what + "that of tenant '" + marked.tenant + "'"};
  }
  if (!known.tenant.store.is_nil() && known.tenant.store != store_->id()) {
    throw UsageError{what + "another one than the registered"};
  }
  if (!takes_over && !marked.mark.empty() && marked.mark != mark_.detail()) {
    throw UsageError{what + marked.mark.substr(marked.tenant.size() + 2) +
                     "; if that is lost, or the tenant has moved here, take it over "
                     "(--take-over): the other one can't use it any more"};
  }
  store_->database().require_mark(mark_);
}

OpenStore::~OpenStore() {
  commits_.disconnect();
  while (!kept_.empty()) kept_.pop_back();
  if (store_) store_->database().detach_mark(mark_);
}

void* OpenStore::keep(std::type_index type, FunctionRef<std::shared_ptr<void>(Store&)> make) {
  const std::lock_guard lock{kept_mutex_};
  for (const auto& [known, object] : kept_) {
    if (known == type) return object.get();
  }
  kept_.emplace_back(type, make(*store_));
  return kept_.back().second.get();
}

Store open_own(Registry& registry, const Tenant& tenant) {
  Store store = open_store_of(registry, tenant.name, Access::write, nullptr);
  check_is_registered(store, tenant);
  Mark own{mark_of(tenant.registry, tenant.name)};
  attach_own(store, own, tenant.name);
  store.database().detach_mark(own);
  return store;
}

void settle(Registry& registry, const Registered& known) {
  Store store = open_own(registry, known.tenant);
  Marked marked = read_marks(store);
  marked.change = 0;
  settle_store(store, known, marked);
}

}  // namespace stela::tenants
