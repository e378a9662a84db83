// The stores that are open, each as long as somebody uses it, and some time longer.
#pragma once

#include "tenants/open_store.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tenants {

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
