#include <stela/framework/error.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/outbox/tenant_relay.hpp>

#include "database/host.hpp"
#include "tenants/shifts.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace stela {

using tenants::Look;

namespace {

RelayOptions prepared(RelayOptions options) {
  if (options.worker.empty()) options.worker = host::make_worker_name();
  options.idle_backoff = std::min(options.idle_backoff, tenants::short_idle);
  check(options);
  return options;
}

bool did_something(const RelayTick& tick) {
  return tick.claimed + tick.published + tick.failed() + tick.skipped + tick.leased_count > 0;
}

}  // namespace

class TenantRelay::Work final : public tenants::Work {
 public:
  Work(Tenants& tenants, MakePublisher make_publisher, const TenantRelayOptions& options)
      : make_publisher_{std::move(make_publisher)},
        outbox_{options.outbox},
        relay_{prepared(options.relay)},
        shifts{tenants, *this, options.threads} {
    tenants.furnish([options = outbox_](TenantStore& tenant) { tenant.keep<Outbox>(options); });
  }

  bool serves(TenantState state) const noexcept override { return state < TenantState::erasing; }

  Look look(TenantStore& tenant) override {
    const OutboxStatus status =
        OutboxOperations{tenant.store(), {.partitioner = outbox_.partitioner}}.status();
    // What has published before is compared with the broker once: it may have been restored.
    const bool is_compared = was_served(tenant.name());
    Look seen;
    for (const PartitionStatus& partition : status.partitions) {
      const std::string name = "partition " + partition.id.label();
      if (partition.stopped) {
        seen.note_trouble(name + " is stopped: " + partition.stopped_detail);
        continue;
      }
      if (partition.backing_since) {
        seen.note_trouble(name + " backs off: " + partition.last_error);
      }
      const bool is_elsewhere = !partition.owner.empty() && partition.owner != relay_.worker &&
                                partition.lease_left.count() > 0;
      const bool is_idle = partition.pending + partition.redeliveries == 0;
      if (is_idle && (is_compared || partition.broker_sequence == 0)) continue;
      // Another worker compares it meanwhile, or has died.
      auto pause = is_idle && is_elsewhere ? partition.lease_left : std::chrono::microseconds{0};
      if (partition.next_attempt_at) pause = *partition.next_attempt_at - status.at;
      if (!is_elsewhere && pause.count() <= 0) {
        seen.has_work = true;
      } else {
        seen.look_again_in(std::max<std::chrono::microseconds>(pause, tenants::look_elsewhere));
      }
    }
    return seen;
  }

  std::string serve(TenantStore& tenant, std::stop_token stop,
                    const std::function<bool(bool is_idle)>& is_over) override {
    Outbox& outbox = tenant.keep<Outbox>(outbox_);
    const auto publisher = make_publisher_(tenant.name(), outbox);
    if (!publisher) throw UsageError{"no publisher was made for tenant '" + tenant.name() + "'"};
    Relay relay{outbox, *publisher, relay_};
    std::stop_source turn;
    const std::stop_callback ends{stop, [&] { turn.request_stop(); }};
    std::string obstacle;
    relay.on_tick([&](const RelayTick& tick) {
      const bool is_busy = did_something(tick);
      if (is_busy && listener_) listener_(tenant.name(), tick);
      if (!tick.store_refusal.empty()) obstacle = tick.store_refusal;
      if (tick.broker.state == BrokerState::down ||
          tick.broker.state == BrokerState::misconfigured) {
        obstacle = "the broker is " + to_string(tick.broker);
      } else if (tick.published > 0) {
        obstacle.clear();
      }
      if (is_over(!is_busy)) turn.request_stop();
    });
    relay.run(turn.get_token());
    if (obstacle.empty()) {
      const std::lock_guard lock{mutex_};
      served_.insert(tenant.name());
    }
    return obstacle;
  }

 private:
  friend class TenantRelay;

  bool was_served(const std::string& tenant) {
    const std::lock_guard lock{mutex_};
    return served_.contains(tenant);
  }

  const MakePublisher make_publisher_;
  const OutboxOptions outbox_;
  const RelayOptions relay_;
  std::mutex mutex_;
  /// Guarded by mutex_: by this process.
  std::set<std::string> served_;
  std::function<void(const std::string&, const RelayTick&)> listener_;

 public:
  tenants::Shifts shifts;
};

TenantRelay::TenantRelay(Tenants& tenants, MakePublisher make_publisher,
                         const TenantRelayOptions& options)
    : work_{std::make_unique<Work>(tenants, std::move(make_publisher), options)} {}
TenantRelay::~TenantRelay() = default;

void TenantRelay::run(std::stop_token stop) {
  work_->shifts.run(std::move(stop));
}
void TenantRelay::run_once() {
  work_->shifts.run_once();
}
TenantsStanding TenantRelay::standing() const {
  return work_->shifts.standing();
}
void TenantRelay::on_tick(
    std::function<void(const std::string& tenant, const RelayTick&)> listener) {
  work_->listener_ = std::move(listener);
}

}  // namespace stela
