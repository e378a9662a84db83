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

/// Relays until it is stopped.
void relay(stela::Relay& relay, std::stop_token stop) {
  std::int64_t published = 0;
  relay.on_tick([&](const stela::RelayTick& tick) {
    published += tick.published;
    if (tick.published > 0) {
      std::cout << "published " << published << (published == 1 ? " message" : " messages")
                << std::endl;
    }
  });
  relay.run(stop);
}

/// Requests a stop once nothing waits to be handled and nothing to be published. What a dead worker
/// still holds is waited for.
void stop_when_empty(Application& application, std::stop_source stop) {
  stela::OutboxOperations outbox{application.store};
  // What the process records is projected too.
  for (const std::string_view name : {"fulfilment", "open_orders", "sales_per_day"}) {
    const auto end = application.store.last_sequence();
    if (!application.projections.wait_for(name, end, std::chrono::minutes{1})) {
      throw std::runtime_error{std::string{name} + " doesn't come on; is it halted?"};
    }
  }
  while (outbox.status().pending > 0) std::this_thread::sleep_for(std::chrono::milliseconds{50});
  stop.request_stop();
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

  const StopOnSignal signal;
  std::stop_source stop;
  const std::jthread relaying{[&] { relay(outgoing, stop.get_token()); }};
  const std::jthread projecting{[&] { runner.run(stop.get_token()); }};
  if (until_empty) {
    stop_when_empty(application, stop);
  } else {
    signal.wait();
    stop.request_stop();
  }
}

}  // namespace orders
