// The shop's worker: projects, reacts and relays.
#include "commands.hpp"

#include <stela/nats/publisher.hpp>

#include <csignal>
#include <iostream>
#include <stop_token>
#include <thread>

namespace orders {
namespace {

stela::nats::PublisherOptions broker_at(const std::string& url) {
  return {.url = url, .prefix = "shop", .stream = "SHOP", .ensure_stream = true};
}

/// Requests a stop on SIGINT and SIGTERM. To be made before other threads are started.
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

/// Short enough for a demonstration: what a killed worker held is taken over after `lease_ttl`.
/// In production the defaults are calmer.
stela::RelayOptions quick_take_over() {
  return {.lease_ttl = std::chrono::seconds{3},
          .lease_renew = std::chrono::seconds{1},
          .heartbeat_ttl = std::chrono::seconds{4},
          .idle_backoff = std::chrono::milliseconds{100},
          .publish_timeout = std::chrono::seconds{1}};
}

/// Relays until it is stopped; if `until_empty`, until nothing waits. What a dead worker still
/// holds is waited for.
void relay(Application& application, stela::Relay& relay, std::stop_source stop, bool until_empty) {
  stela::OutboxOperations outbox{application.store};
  std::int64_t published = 0;
  relay.on_tick([&](const stela::RelayTick& tick) {
    published += tick.published;
    if (tick.published > 0) std::cout << "published " << published << " messages" << std::endl;
    if (until_empty && outbox.status().pending == 0) stop.request_stop();
  });
  relay.run(stop.get_token());
}

}  // namespace

void work(Application& application, std::span<const std::string> arguments) {
  stela::nats::Publisher broker{broker_at(arguments[0])};
  stela::Relay relay{application.outbox, broker, quick_take_over()};
  application.runner.catch_up();
  const bool until_empty = arguments.size() > 1;
  if (until_empty && arguments[1] != "--until-empty") {
    throw stela::UsageError{"unknown option '" + arguments[1] + "'; there is --until-empty"};
  }
  std::stop_source stop;
  if (until_empty) {
    orders::relay(application, relay, stop, true);
    return;
  }
  const StopOnSignal signal;
  const std::jthread relaying{[&] { orders::relay(application, relay, stop, false); }};
  signal.wait();
  stop.request_stop();
}

}  // namespace orders
