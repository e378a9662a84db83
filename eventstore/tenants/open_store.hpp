// A tenant's store: opened with its keys, checked that it is the tenant's, and marked as that.
#pragma once

#include "tenants/registry.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/tenants.hpp>

#include <cstdint>
#include <functional>
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

}  // namespace stela::tenants
