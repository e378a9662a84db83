// One runner for the projections of many tenants.
#pragma once

#include <stela/eventstore/tenants.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections/runner.hpp>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace stela {

struct TenantRunnerOptions {
  /// How many tenants are served at the same time, each by a thread with a runner. The others with
  /// something to do take turns of a second. 0: 16, or a quarter of `most_open`.
  int threads = 0;
  /// For each runner. `worker` is the same name in all stores.
  RunnerOptions runner = {};
};

/// Keeps the projections of all active tenants up to date, and fires their timers. A suspended
/// tenant's stand still, because reactions append. A tenant with nothing to do costs nothing but a
/// look at its store's files. Any number of processes may share the tenants. What fails concerns
/// one tenant, and is tried again after a growing pause. Threads: `run` one at a time; `standing`
/// any.
class STELA_PROJECTIONS_EXPORT TenantRunner {
 public:
  /// Gives each store that is opened its Projections, which `TenantStore::keep` returns, registered
  /// by `set_up`. UsageError if an option is out of range. `tenants` must outlive it.
  TenantRunner(Tenants& tenants, std::function<void(Projections&)> set_up,
               const TenantRunnerOptions& options = {});
  ~TenantRunner();
  TenantRunner(const TenantRunner&) = delete;
  TenantRunner& operator=(const TenantRunner&) = delete;

  /// Projects until `stop` is requested.
  void run(std::stop_token stop);
  /// Projects what is committed. Returns when nothing more can be done now: `standing` says what
  /// stands still.
  void run_once();
  TenantsStanding standing() const;

  /// Called after each pass of a runner that did something, on its thread.
  void on_tick(std::function<void(const std::string& tenant, const RunnerTick&)> listener);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace stela
