#include <stela/tool/readiness.hpp>

#include "worker/health.hpp"
#include "worker/store_metrics.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/error.hpp>
#include <stela/outbox/relay.hpp>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace stela::tool {

class Readiness::Impl {
 public:
  Impl(Store& the_store, const ReadinessOptions& options)
      : store_{the_store.anchor()}, options_{options} {}

  void note(const RelayTick& tick) {
    const std::lock_guard lock{mutex_};
    if (tick.renewed_heartbeat || !heartbeat_) heartbeat_ = std::chrono::steady_clock::now();
    store_refusal_ = tick.store_refusal;
    brokers_["broker"] = tick.broker;
  }
  void note(std::string_view consumer, const BrokerStatus& broker) {
    const std::lock_guard lock{mutex_};
    brokers_["broker of consumer " + std::string{consumer}] = broker;
  }
  void fail(std::string_view why) {
    const std::lock_guard lock{mutex_};
    failures_.emplace_back(why);
  }

  std::vector<std::string> problems() const {
    ReadinessFacts facts = own_facts();
    try {
      facts.outbox = outbox_status_of(store_);
      facts.projectors = ProjectionOperations{store_}.status();
    } catch (const std::exception& e) {
      facts.store_problem = e.what();
    }
    return reasons_not_ready(facts);
  }

 private:
  ReadinessFacts own_facts() const {
    const std::lock_guard lock{mutex_};
    ReadinessFacts facts{.store_problem = store_refusal_,
                         .failures = failures_,
                         .heartbeat_ttl = options_.heartbeat_ttl,
                         .brokers = brokers_,
                         .needs_broker = options_.needs_broker,
                         .max_lag = options_.max_lag};
    if (heartbeat_) {
      facts.heartbeat_age = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - *heartbeat_);
    }
    return facts;
  }

  Store& store_;
  const ReadinessOptions options_;
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::optional<Steady> heartbeat_;
  std::string store_refusal_;
  std::map<std::string, BrokerStatus> brokers_;
  std::vector<std::string> failures_;
};

Readiness::Readiness(Store& store, const ReadinessOptions& options)
    : impl_{std::make_unique<Impl>(store, options)} {}
Readiness::~Readiness() = default;

void Readiness::note(const RelayTick& tick) {
  impl_->note(tick);
}
void Readiness::note(std::string_view consumer, const BrokerStatus& broker) {
  impl_->note(consumer, broker);
}
void Readiness::fail(std::string_view why) {
  impl_->fail(why);
}
std::vector<std::string> Readiness::problems() const {
  return impl_->problems();
}

}  // namespace stela::tool
