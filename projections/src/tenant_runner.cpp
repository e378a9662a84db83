#include <stela/framework/settings.hpp>
#include <stela/projections/detail/settings.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/tenant_runner.hpp>
#include <stela/projections/timers.hpp>

#include "database/database.hpp"
#include "database/host.hpp"
#include "projections_sql/parked.hpp"
#include "tenants/shifts.hpp"

#include <algorithm>
#include <utility>

namespace stela {

using tenants::Look;

namespace {

RunnerOptions prepared(RunnerOptions options) {
  if (options.worker.empty()) options.worker = host::make_worker_name();
  options.idle_backoff = std::min(options.idle_backoff, tenants::short_idle);
  check_ranges(runner_settings(), options);
  return options;
}

bool did_something(const RunnerTick& tick) {
  return tick.scanned + tick.commits + tick.failed + tick.taken_over + tick.timers_fired +
             tick.timers_failed >
         0;
}

bool drives(const Projections& projections, std::string_view name) {
  const auto& all = projections.registrations();
  return std::any_of(all.begin(), all.end(), [&](const detail::Registration& one) {
    return one.name == name && one.kind != ProjectionKind::inline_;
  });
}

/// True if an operator wants parked events to be tried again.
bool has_wanted_again(Store& store) {
  bool is_wanted = false;
  store.database().read([&](database::Connection& connection) {
    auto parked = connection.rows(projections::sql::has_wanted_again{});
    is_wanted = parked.step() && parked.wanted();
  });
  return is_wanted;
}

}  // namespace

class TenantRunner::Work final : public tenants::Work {
 public:
  Work(Tenants& tenants, std::function<void(Projections&)> set_up,
       const TenantRunnerOptions& options)
      : set_up_{std::move(set_up)},
        runner_{prepared(options.runner)},
        shifts{tenants, *this, options.threads} {
    tenants.furnish([set_up = set_up_](TenantStore& tenant) { projections_of(tenant, set_up); });
  }

  bool serves(TenantState state) const noexcept override { return state == TenantState::active; }

  Look look(TenantStore& tenant) override {
    const Projections& projections = projections_of(tenant, set_up_);
    Store& store = tenant.store();
    const Timestamp now = store.database().now();
    Look seen{.has_work = has_wanted_again(store)};
    for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
      if (drives(projections, one.name)) look_at(one, now, seen);
    }
    look_at_timers(projections, store, now, seen);
    return seen;
  }

  std::string serve(TenantStore& tenant, std::stop_token stop,
                    const std::function<bool(bool is_idle)>& is_over) override {
    Runner runner{projections_of(tenant, set_up_), runner_};
    std::stop_source turn;
    const std::stop_callback ends{stop, [&] { turn.request_stop(); }};
    runner.on_tick([&](const RunnerTick& tick) {
      const bool is_busy = did_something(tick);
      if (is_busy && listener_) listener_(tenant.name(), tick);
      if (is_over(!is_busy)) turn.request_stop();
    });
    runner.run(turn.get_token());
    return {};
  }

 private:
  friend class TenantRunner;

  static Projections& projections_of(TenantStore& tenant,
                                     const std::function<void(Projections&)>& set_up) {
    return tenant.keep_as<Projections>([&](Store& store) {
      auto made = std::make_shared<Projections>(store);
      set_up(*made);
      return made;
    });
  }

  void look_at(const ProjectorStatus& one, Timestamp now, Look& seen) const {
    if (one.stopped) return seen.note_trouble("'" + one.name + "' is stopped: " + one.error);
    const bool is_behind = one.lag_events > 0 || one.state == BuildState::building;
    if (!is_behind) return;
    if (!one.owner.empty() && one.owner != runner_.worker && one.lease_until > now) {
      return seen.look_again_in(tenants::look_elsewhere);
    }
    if (one.failing.value() > 0 && one.next_attempt_at > now) {
      seen.note_trouble("'" + one.name + "' fails at event " + std::to_string(one.failing.value()) +
                        ", and is tried again: " + one.error);
      return seen.look_again_in(one.next_attempt_at - now);
    }
    seen.has_work = true;
  }

  static void look_at_timers(const Projections& projections, Store& store, Timestamp now,
                             Look& seen) {
    TimerOperations timers{store};
    std::vector<ProcessStatus> processes = timers.processes();
    std::erase_if(processes, [&](const ProcessStatus& one) {
      return !drives(projections, one.name) || one.stopped || !one.next_due_at;
    });
    if (processes.empty()) return;
    if (const auto holds = timers.holds(); !holds.empty()) {
      return seen.note_trouble(
          "its timers are held: " + std::string{to_string(holds.front().reason)} +
          "; 'stela timers resume'");
    }
    for (const ProcessStatus& one : processes) {
      if (*one.next_due_at <= now) seen.has_work = true;
      seen.look_again_in(*one.next_due_at - now);
    }
  }

  const std::function<void(Projections&)> set_up_;
  const RunnerOptions runner_;
  std::function<void(const std::string&, const RunnerTick&)> listener_;

 public:
  tenants::Shifts shifts;
};

TenantRunner::TenantRunner(Tenants& tenants, std::function<void(Projections&)> set_up,
                           const TenantRunnerOptions& options)
    : work_{std::make_unique<Work>(tenants, std::move(set_up), options)} {}
TenantRunner::~TenantRunner() = default;

void TenantRunner::run(std::stop_token stop) {
  work_->shifts.run(std::move(stop));
}
void TenantRunner::run_once() {
  work_->shifts.run_once();
}
TenantsStanding TenantRunner::standing() const {
  return work_->shifts.standing();
}
void TenantRunner::on_tick(
    std::function<void(const std::string& tenant, const RunnerTick&)> listener) {
  work_->listener_ = std::move(listener);
}

}  // namespace stela
