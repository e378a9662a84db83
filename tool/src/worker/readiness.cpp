#include <stela/tool/readiness.hpp>

#include "worker/health.hpp"
#include "worker/store_metrics.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/settings.hpp>
#include <stela/outbox/relay.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace stela::tool {
namespace {

constexpr Setting<ReadinessOptions> with_ranges[] = {
    setting<&ReadinessOptions::max_lag>("max_lag", ""),
    setting<&ReadinessOptions::heartbeat_ttl>("heartbeat_ttl", "", {.range = some_time}),
};

}  // namespace

class Readiness::Impl {
 public:
  Impl(Store& the_store, ReadinessOptions options)
      : store_{the_store.anchor()}, options_{std::move(options)} {
    check_ranges<ReadinessOptions>(with_ranges, options_);
  }

  void note(const RelayTick& tick, std::string_view name) {
    const std::lock_guard lock{mutex_};
    const auto [relay, is_new] = relays_.try_emplace(std::string{name});
    if (tick.renewed_heartbeat || is_new) relay->second.heartbeat = steady_now();
    relay->second.store_refusal = tick.store_refusal;
    relay->second.broker = tick.broker;
  }
  void note(std::string_view consumer, const BrokerStatus& broker) {
    const std::lock_guard lock{mutex_};
    consumers_[std::string{consumer}] = broker;
  }
  void fail(std::string_view why) {
    const std::lock_guard lock{mutex_};
    failures_.emplace_back(why);
  }

  std::vector<std::string> problems() const {
    ReadinessFacts facts = own_facts();
    try {
      if (options_.outbox) facts.outbox = outbox_status_of(store_);
      facts.projectors = ProjectionOperations{store_}.status();
      if (options_.projectors) keep_own(*options_.projectors, facts);
    } catch (const std::exception& e) {
      facts.store_problem = e.what();
    }
    return reasons_not_ready(facts);
  }

 private:
  struct NotedRelay {
    Steady heartbeat = {};
    std::string store_refusal = {};
    BrokerStatus broker = {};
  };

  static Steady steady_now() { return std::chrono::steady_clock::now(); }

  static void keep_own(const std::vector<std::string>& own, ReadinessFacts& facts) {
    auto& all = facts.projectors;
    std::erase_if(all, [&](const ProjectorStatus& each) {
      return std::find(own.begin(), own.end(), each.name) == own.end();
    });
    for (const std::string& name : own) {
      const bool is_there =
          std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
      if (!is_there) facts.missing_projectors.push_back(name);
    }
  }

  ReadinessFacts own_facts() const {
    const std::lock_guard lock{mutex_};
    ReadinessFacts facts{.at = store_.conventions().clock->now(),
                         .failures = failures_,
                         .heartbeat_ttl = options_.heartbeat_ttl,
                         .consumers = consumers_,
                         .needs_broker = options_.needs_broker,
                         .max_lag = options_.max_lag};
    for (const auto& [name, relay] : relays_) {
      const auto age =
          std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - relay.heartbeat);
      facts.relays[name] = {age, relay.store_refusal, relay.broker};
    }
    return facts;
  }

  Store& store_;
  const ReadinessOptions options_;
  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::map<std::string, NotedRelay> relays_;
  std::map<std::string, BrokerStatus> consumers_;
  std::vector<std::string> failures_;
};

Readiness::Readiness(Store& store, const ReadinessOptions& options)
    : impl_{std::make_unique<Impl>(store, options)} {}
Readiness::~Readiness() = default;

void Readiness::note(const RelayTick& tick, std::string_view relay) {
  impl_->note(tick, relay);
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
