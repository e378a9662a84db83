// The registry of tenants: a store of its own, whose events are the tenants' lives.
#pragma once

#include "tenants/names.hpp"

#include <stela/eventstore/tenants.hpp>
#include <stela/framework/event_store.hpp>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tenants {

/// A tenant's key store. Null id: it has none.
struct KeyFiles {
  Uuid id = {};
  /// The master key beside it serves no other key store.
  bool has_own_master = false;
};

struct Registered {
  Tenant tenant = {};
  KeyFiles keys = {};
  StreamVersion version = {};
};

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Registry {
 public:
  Registry(const std::string& location, const TenantsOptions& options);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  const Pattern& stores() const noexcept { return *stores_; }
  /// Nothing if the tenants have no keys.
  const std::optional<Pattern>& keys() const noexcept { return keys_; }
  const TenantsOptions& options() const noexcept { return options_; }
  Store& store() noexcept { return store_; }
  /// What a tenant's key store serves, also told from a copy of the registry.
  std::string served_as(std::string_view tenant);
  int most_open() const noexcept {
    return options_.most_open.value_or(stores_->is_on_server() ? 20 : 200);
  }

  std::optional<Registered> find(std::string_view name);
  /// NotFound if it isn't registered.
  Registered get(std::string_view name);
  std::vector<Tenant> list();

  // Each appends an event, and returns the tenant as it is then. ConcurrencyConflict if another
  // process changed the tenant meanwhile.
  /// UsageError if the store or the key store is another tenant's.
  Tenant create(std::string_view name, const Uuid& store, const KeyFiles& keys);
  Tenant suspend(std::string_view name, std::string_view reason);
  Tenant resume(std::string_view name);
  Tenant drop(std::string_view name, std::string_view reason, Timestamp erase_from);
  Tenant begin_erasing(std::string_view name);
  Tenant end_erasing(std::string_view name);

 private:
  enum class Freshness : bool { recent, now };

  /// Keeps other programs from appending to it.
  class OwnMark final : public Participant {
   public:
    std::string_view name() const noexcept override { return "tenants"; }
    std::string_view detail() const noexcept override { return "their registry"; }
  };

  void settle_facts(const std::string& location);
  void read(Freshness freshness);
  template <class E>
  void take(const StoredEvent& event, const E& happened);
  template <class E>
  Tenant append(std::string_view name, const E& event);

  const TenantsOptions options_;
  const bool is_on_server_;
  const std::string folder_;
  /// A path or a database, for people.
  const std::string where_;
  OwnMark mark_;
  Store store_;
  std::optional<Pattern> stores_;
  std::optional<Pattern> keys_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, Registered, std::less<>> entries_;
  std::optional<std::pair<std::string, std::string>> facts_;
  GlobalSequence position_{};
  std::chrono::steady_clock::time_point read_at_{};
};

}  // namespace stela::tenants
