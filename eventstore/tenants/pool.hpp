// The stores that are open, each as long as somebody uses it, and some time longer.
#pragma once

#include "tenants/registry.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/tenants.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

namespace stela::tenants {

/// Marks a store as a registry's tenant: appends without it, or by another tenant's name, are
/// refused. The recorded detail may also have the registry's last change that the store knows.
class Mark final : public Participant {
 public:
  explicit Mark(std::string detail) : detail_{std::move(detail)} {}
  std::string_view name() const noexcept override { return "tenant"; }
  std::string_view detail() const noexcept override { return detail_; }
  bool accepts(std::string_view recorded) const noexcept override;

 private:
  const std::string detail_;
};

/// What the store itself says of its tenant.
struct Marked {
  /// The mark's detail; empty if it is no tenant's.
  std::string mark = {};
  /// The version of the tenant's stream in the registry.
  std::int64_t change = 1;
  std::string tenant = {};
  bool is_registry = false;
  /// Why it refuses appends; empty if it doesn't.
  std::string suspension = {};
};
Marked read_marks(Store& store);
/// The mark of a registry's tenant.
std::string mark_of(const Uuid& registry, const std::string& tenant);

/// Why appends to a store are refused.
class Suspension final : public Participant {
 public:
  explicit Suspension(std::string why) : why_{std::move(why)} {}
  std::string_view name() const noexcept override;
  std::string_view detail() const noexcept override { return why_; }

 private:
  const std::string why_;
};

enum class Opening : std::uint8_t {
  existing,
  new_store,
  /// An existing one that isn't registered, and no other registry's.
  adopted,
  /// The same, or another registry's until now.
  taken_over,
};

/// A store at a tenant's place, whether or not it is registered.
Store open_to_read(Registry& registry, std::string_view tenant);

/// The tenant's store without its keys. SchemaMismatch if another store stands in its place,
/// UsageError if it is another registry's.
Store open_own(Registry& registry, const Tenant& tenant);
/// Makes a tenant's store refuse appends, or accept them, as its state says, even if the store
/// knows of a later change: the registry may be from an older backup. Throws as `open_own`.
void settle(Registry& registry, const Registered& known);
/// What callers of a suspended or dropped tenant are told.
std::string why_suspended(const Tenant& tenant);

/// A tenant's store, its keys, and what lives with it. Threads: any number at once.
class OpenStore {
 public:
  OpenStore(Registry& registry, const Registered& known, Opening opening);
  ~OpenStore();
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

  const std::string& name() const noexcept { return name_; }
  Store& store() noexcept { return *store_; }
  Keys* keys() noexcept { return keys_ ? &*keys_ : nullptr; }
  const KeyFiles& key_files() const noexcept { return key_files_; }
  void* keep(std::type_index type, FunctionRef<std::shared_ptr<void>(Store&)> make);
  void listen(std::function<void(const CommitNotice&)> listener) {
    commits_ = store_->on_commit(std::move(listener));
  }

 private:
  /// Checks what stands at the places of a store that isn't registered, and makes a new one.
  void prepare(Registry& registry, Opening opening);
  /// Makes the key store of a store that isn't registered this tenant's. SchemaMismatch or
  /// UsageError if it is another's.
  void settle_keys(Registry& registry, const KeyFiles& known, Opening opening);
  /// Makes it this registry's. UsageError if it is a registry, bears another tenant's name, or is
  /// another registry's.
  void adopt(const Registered& known, bool takes_over);

  const std::string name_;
  Mark mark_;
  std::optional<Keys> keys_;
  KeyFiles key_files_;
  std::optional<Store> store_;
  Subscription commits_;
  std::mutex kept_mutex_;
  /// Guarded by kept_mutex_, in the order in which they were made.
  std::vector<std::pair<std::type_index, std::shared_ptr<void>>> kept_;
};

/// Threads: any number at once.
class StorePool {
 public:
  /// `registry` must outlive it.
  explicit StorePool(Registry& registry) : registry_{registry} {}

  /// UsageError while a store is in use.
  void furnish(std::function<void(TenantStore&)> furnish);
  /// Called after each commit of events through an open store, on the committing thread, until
  /// `owner` ends.
  void listen(std::weak_ptr<void> owner, std::function<void(const std::string& tenant)> listener);
  TenantStore use(const Registered& wanted, Opening opening);
  /// Closes what nobody has used for `close_after`. `use` does it, too.
  void close_idle();
  /// Closes it if nobody uses it.
  void close(std::string_view name);

 private:
  struct Listener {
    std::weak_ptr<void> owner;
    std::function<void(const std::string&)> call;
  };
  void note_commit(const std::string& tenant);

  using Steady = std::chrono::steady_clock::time_point;
  struct Slot {
    /// Null while it is being opened.
    std::unique_ptr<OpenStore> open;
    int users = 0;
    Steady idle_since{};
  };
  using Slots = std::map<std::string, Slot, std::less<>>;
  /// Closed stores, to be destroyed without the lock.
  using Closed = std::vector<std::unique_ptr<OpenStore>>;

  /// Closes those that have been idle since then.
  void close_idle(Steady since, Closed& closed);
  /// Closes the one that has been idle for longest. False if all are in use.
  bool close_one(Closed& closed);
  TenantStore lend(Slots::iterator slot);
  void give_back(Slots::iterator slot) noexcept;

  Registry& registry_;
  std::vector<std::function<void(TenantStore&)>> furnishing_;
  std::mutex listeners_mutex_;
  /// Guarded by listeners_mutex_.
  std::vector<Listener> listeners_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by mutex_.
  Slots slots_;
};

}  // namespace stela::tenants
