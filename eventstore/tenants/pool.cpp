#include "tenants/pool.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::tenants {

using std::chrono::steady_clock;

void StorePool::furnish(std::function<void(TenantStore&)> furnish) {
  Closed closed;
  const std::lock_guard lock{mutex_};
  // What is open already would lack it.
  while (close_one(closed)) {
  }
  if (!slots_.empty()) {
    throw UsageError{
        "a tenant's store is in use, without what `furnish` gives to each: furnish, and "
        "make relays and runners, before the first use"};
  }
  furnishing_.push_back(std::move(furnish));
}

TenantStore StorePool::use(const Registered& wanted, Opening opening) {
  const std::string& name = wanted.tenant.name;
  Closed closed;
  std::unique_lock lock{mutex_};
  const TenantsOptions& options = registry_.options();
  const Steady begun = steady_clock::now();
  close_idle(begun - options.close_after, closed);
  for (;;) {
    const auto known = slots_.find(name);
    if (known != slots_.end() && known->second.open) return lend(known);
    const bool has_room = std::cmp_less(slots_.size(), registry_.most_open());
    if (known == slots_.end() && (has_room || close_one(closed))) break;
    if (changed_.wait_until(lock, begun + options.files.busy_timeout) == std::cv_status::timeout) {
      throw StoreBusy{"all of " + std::to_string(registry_.most_open()) +
                      " stores of tenants that may be open at once are in use; end some handles, "
                      "or raise most_open"};
    }
  }
  const auto slot = slots_.try_emplace(name).first;
  lock.unlock();
  std::unique_ptr<OpenStore> made;
  try {
    made = std::make_unique<OpenStore>(registry_, wanted, opening);
    made->listen([this, name](const CommitNotice&) { note_commit(name); });
    TenantStore unfinished{std::shared_ptr<OpenStore>{std::shared_ptr<void>{}, made.get()}};
    for (const auto& furnish : furnishing_) furnish(unfinished);
  } catch (...) {
    made.reset();
    lock.lock();
    slots_.erase(slot);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  slot->second.open = std::move(made);
  changed_.notify_all();
  return lend(slot);
}

void StorePool::listen(std::weak_ptr<void> owner,
                       std::function<void(const std::string&)> listener) {
  const std::lock_guard lock{listeners_mutex_};
  listeners_.push_back({std::move(owner), std::move(listener)});
}

void StorePool::note_commit(const std::string& tenant) {
  const std::lock_guard lock{listeners_mutex_};
  std::erase_if(listeners_, [](const Listener& one) { return one.owner.expired(); });
  for (const Listener& one : listeners_) {
    if (const auto alive = one.owner.lock()) one.call(tenant);
  }
}

TenantStore StorePool::lend(Slots::iterator slot) {
  ++slot->second.users;
  return TenantStore{std::shared_ptr<OpenStore>{slot->second.open.get(),
                                                [this, slot](OpenStore*) { give_back(slot); }}};
}

void StorePool::give_back(Slots::iterator slot) noexcept {
  const std::lock_guard lock{mutex_};
  if (--slot->second.users > 0) return;
  slot->second.idle_since = steady_clock::now();
  changed_.notify_all();
}

void StorePool::close_idle(Steady since, Closed& closed) {
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    Slot& one = slot->second;
    if (one.open && one.users == 0 && one.idle_since < since) {
      closed.push_back(std::move(one.open));
      slot = slots_.erase(slot);
    } else {
      ++slot;
    }
  }
}

bool StorePool::close_one(Closed& closed) {
  auto oldest = slots_.end();
  for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
    if (!slot->second.open || slot->second.users > 0) continue;
    const bool is_older =
        oldest == slots_.end() || slot->second.idle_since < oldest->second.idle_since;
    if (is_older) oldest = slot;
  }
  if (oldest == slots_.end()) return false;
  closed.push_back(std::move(oldest->second.open));
  slots_.erase(oldest);
  return true;
}

void StorePool::close(std::string_view name) {
  Closed closed;
  const std::lock_guard lock{mutex_};
  const auto slot = slots_.find(name);
  if (slot == slots_.end() || !slot->second.open || slot->second.users > 0) return;
  closed.push_back(std::move(slot->second.open));
  slots_.erase(slot);
}

void StorePool::close_idle() {
  Closed closed;
  const std::lock_guard lock{mutex_};
  close_idle(steady_clock::now() - registry_.options().close_after, closed);
}

}  // namespace stela::tenants
