// One relay for the outboxes of many tenants.
#pragma once

#include <stela/eventstore/tenants.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace stela {

struct TenantRelayOptions {
  /// How many tenants are served at the same time, each by a thread with a relay and a publisher.
  /// The others with pending messages take turns of a second. 0: 16, or a quarter of `most_open`.
  int threads = 0;
  /// For each tenant's outbox, also where it doesn't exist yet.
  OutboxOptions outbox = {};
  /// For each relay. `worker` is the same name in all stores.
  RelayOptions relay = {};
};

/// Publishes the pending messages of all tenants, also of suspended and dropped ones. A tenant
/// without any costs nothing but a look at its store's files. Any number of processes may share the
/// tenants. What fails concerns one tenant, and is tried again after a growing pause. Threads:
/// `run` one at a time; `standing` any.
class STELA_OUTBOX_EXPORT TenantRelay {
 public:
  /// Makes the publisher of a tenant, which lives while the tenant is served. Called on the threads
  /// of `run`.
  using MakePublisher =
      std::function<std::unique_ptr<Publisher>(const std::string& tenant, const Outbox& outbox)>;

  /// Gives each store that is opened an Outbox, which `TenantStore::keep` returns. UsageError if an
  /// option is out of range, or a store is in use. `tenants` must outlive it.
  TenantRelay(Tenants& tenants, MakePublisher make_publisher,
              const TenantRelayOptions& options = {});
  ~TenantRelay();
  TenantRelay(const TenantRelay&) = delete;
  TenantRelay& operator=(const TenantRelay&) = delete;

  /// Relays until `stop` is requested.
  void run(std::stop_token stop);
  /// Publishes what is pending. Returns when nothing more can be done now: `standing` says what
  /// stands still.
  void run_once();
  TenantsStanding standing() const;

  /// Called after each pass of a relay that did something, on its thread.
  void on_tick(std::function<void(const std::string& tenant, const RelayTick&)> listener);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace stela
