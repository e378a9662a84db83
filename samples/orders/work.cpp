// The shop's worker: projects, reacts and relays.
#include "commands.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox/tenant_relay.hpp>
#include <stela/projections/tenant_runner.hpp>

#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <stop_token>
#include <thread>

namespace orders {
namespace {

stela::nats::PublisherOptions broker_at(const std::string& url) {
  return {.url = url, .prefix = "shop", .stream = "SHOP", .ensure_stream = true};
}

/// Requests a stop on SIGINT and SIGTERM. Create it before other threads are started.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }

 private:
  sigset_t signals_{};
};

/// Requests a stop when the scope ends, so that joining a thread doesn't wait for ever.
struct StopAtEnd {
  std::stop_source& stop;
  ~StopAtEnd() { stop.request_stop(); }
};

/// Short times for a demonstration: a killed worker's partitions are taken over after `lease_ttl`.
/// The defaults suit production.
stela::RelayOptions quick_take_over() {
  return {.lease_ttl = std::chrono::seconds{3},
          .lease_renew = std::chrono::seconds{1},
          .heartbeat_ttl = std::chrono::seconds{4},
          .idle_backoff = std::chrono::milliseconds{100},
          .publish_timeout = std::chrono::seconds{1}};
}

/// Relays until it is stopped, or until `is_over` after it published what there was.
void relay(stela::Relay& relay, const std::function<bool()>& is_over, std::stop_source stop) {
  std::int64_t published = 0;
  relay.on_tick([&](const stela::RelayTick& tick) {
    published += tick.published;
    if (tick.published > 0) {
      std::cout << "published " << published << (published == 1 ? " message" : " messages")
                << std::endl;
    }
    if (is_over()) stop.request_stop();
  });
  relay.run(stop.get_token());
}

/// Also waits until the process's events are projected.
void wait_until_handled(Application& application) {
  for (const std::string_view name :
       {"fulfilment", "payment_deadline", "open_orders", "sales_per_day"}) {
    const auto end = application.store.last_sequence();
    if (!application.projections.wait_for(name, end, std::chrono::minutes{1})) {
      throw std::runtime_error{std::string{name} + " doesn't come on; is it stopped?"};
    }
  }
}

}  // namespace

void work(Application& application, std::span<const std::string> arguments) {
  const bool until_empty = arguments.size() > 1;
  if (until_empty && arguments[1] != "--until-empty") {
    throw stela::UsageError{"unknown option '" + arguments[1] + "'; there is --until-empty"};
  }
  stela::nats::Publisher broker{broker_at(arguments[0])};
  stela::Relay outgoing{application.outbox, broker, quick_take_over()};
  stela::Runner runner{application.projections, {.lease_ttl = std::chrono::seconds{3}}};

  stela::OutboxOperations outbox{application.store};
  std::atomic<bool> is_handled{false};
  // What a dead worker still holds counts, too: another tick comes, and somebody takes it over.
  const auto is_over = [&] {
    if (!is_handled) return false;
    const stela::OutboxStatus status = outbox.status();
    return status.pending == 0 || status.stopped > 0;
  };

  const StopOnSignal signal;
  std::stop_source stop;
  std::jthread relaying{[&] { relay(outgoing, is_over, stop); }};
  const std::jthread projecting{[&] { runner.run(stop.get_token()); }};
  const StopAtEnd stop_at_end{stop};
  if (!until_empty) return signal.wait();
  wait_until_handled(application);
  is_handled = true;
  relaying.join();
  if (outbox.status().stopped > 0) {
    throw std::runtime_error{
        "a partition of the outbox is stopped, and what it has stays pending; 'stela outbox "
        "status' "
        "says why"};
  }
}

void work_for_all(stela::Tenants& tenants, const std::string& broker,
                  const std::function<void(stela::Projections&)>& set_up) {
  stela::TenantRelay relay{tenants,
                           [&](const std::string& tenant, const stela::Outbox& outbox) {
                             stela::nats::PublisherOptions options = broker_at(broker);
                             options.tenant = tenant;
                             options.fence = outbox.fence();
                             return std::make_unique<stela::nats::Publisher>(options);
                           },
                           {.relay = quick_take_over()}};
  stela::TenantRunner runner{tenants, set_up};
  relay.on_tick([](const std::string& tenant, const stela::RelayTick& tick) {
    if (tick.published > 0) std::cout << tenant << ": published " << tick.published << std::endl;
  });
  const StopOnSignal signal;
  std::stop_source stop;
  const std::jthread relaying{[&] { relay.run(stop.get_token()); }};
  const std::jthread projecting{[&] { runner.run(stop.get_token()); }};
  const StopAtEnd stop_at_end{stop};
  signal.wait();
}

}  // namespace orders
