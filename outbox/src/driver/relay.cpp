#include <stela/framework/error.hpp>
#include <stela/outbox/relay.hpp>

#include "driver/mailbox.hpp"
#include "relay/worker.hpp"
#include "sqlite/core.hpp"
#include "sqlite/relay_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace stela {

using relay::Counts;
using relay::Mailbox;
using relay::Steady;

namespace {

class OsRandom final : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override {
    // UUIDs carry 62 random bits each behind their time.
    for (std::uint8_t& byte : bytes) byte = make_uuid().bytes()[15];
  }
};

std::string make_worker_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string{host.data()} + ':' + std::to_string(getpid()) + ':' +
         make_uuid().to_string().substr(24);
}

RelayOptions with_name(RelayOptions options) {
  if (options.worker.empty()) options.worker = make_worker_name();
  return options;
}

LogLevel level_of(relay::Incident::Kind kind) noexcept {
  switch (kind) {
    case relay::Incident::Kind::broker_back:
      return LogLevel::info;
    case relay::Incident::Kind::publish_failed:
    case relay::Incident::Kind::fenced:
    case relay::Incident::Kind::store_trouble:
      return LogLevel::warning;
    default:
      return LogLevel::error;
  }
}

}  // namespace

/// Feeds a worker's core with time, answers and commits.
class Relay::Driver final : public relay::Observer {
 public:
  Driver(Outbox& outbox, Publisher& publisher, const RelayOptions& options)
      : options_{with_name(options)},
        event_store_{outbox.store()},
        store_{outbox.store()},
        mailbox_{event_store_},
        worker_{
            options_,
            outbox.fence(),
            {store_, publisher, *event_store_.core().options().clock, random_, *this, mailbox_}} {
    check(options_, outbox.fence(), outbox.leasing());
    if (!publisher.can(outbox.fence())) {
      throw UsageError{"this database's outbox has the fence '" +
                       std::string{to_string(outbox.fence())} +
                       "', which this publisher can't keep"};
    }
    if (const Codec codec = event_store_.conventions().codec; !publisher.can(codec)) {
      throw UsageError{"this database keeps its payloads as '" + std::string{to_string(codec)} +
                       "', which this publisher isn't set up to send; tell it the codec if those "
                       "who receive them can read it"};
    }
  }

  RelayTick tick() {
    begin();
    const Steady begun = now();
    step();
    while (is_busy()) {
      mailbox_.wait_until(worker_.deadline());
      step();
    }
    return report(begun);
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake{stop, [this] { mailbox_.wake(); }};
    begin();
    Steady reported = now();
    while (!worker_.is_stopped()) {
      if (stop.stop_requested() && !std::exchange(stopping_, true)) worker_.stop();
      step();
      if (const Steady at = now();
          listener_ && (did_something() || at >= reported + options_.idle_backoff)) {
        listener_(report(reported));
        reported = at;
      }
      if (!worker_.is_stopped()) mailbox_.wait_until(worker_.deadline());
    }
    if (listener_) listener_(report(reported));
    started_ = stopping_ = false;
  }

  void on_tick(std::function<void(const RelayTick&)> listener) { listener_ = std::move(listener); }
  const std::string& worker() const noexcept { return options_.worker; }

 private:
  Steady now() const { return event_store_.core().options().clock->steady_now(); }

  void begin() {
    if (!std::exchange(started_, true)) worker_.start();
  }

  void step() {
    for (const Answer& answer : mailbox_.answers()) worker_.on_answer(answer);
    worker_.run_due();
  }

  /// Something is in flight, or the broker hasn't said yet whether it is there.
  bool is_busy() const { return !worker_.is_idle() || worker_.is_connecting(); }

  bool did_something() const {
    const Counts& counts = worker_.counts();
    return counts.claimed != reported_.claimed || counts.published != reported_.published ||
           counts.retried != reported_.retried || counts.parked != reported_.parked ||
           counts.leased != reported_.leased || counts.released != reported_.released;
  }

  RelayTick report(Steady since) {
    const Counts& c = worker_.counts();
    const Counts& r = reported_;
    RelayTick tick{.claimed = c.claimed - r.claimed,
                   .published = c.published - r.published,
                   .retried = c.retried - r.retried,
                   .parked = c.parked - r.parked,
                   .skipped = c.skipped - r.skipped,
                   .fenced = c.fenced - r.fenced,
                   .read_backs = c.read_backs - r.read_backs,
                   .renewed_heartbeat = c.heartbeats != r.heartbeats,
                   .purged_stale = c.purged_workers - r.purged_workers,
                   .active_workers = static_cast<std::int64_t>(worker_.active_workers()),
                   .desired_count = static_cast<std::int64_t>(worker_.wanted_partitions()),
                   .owned_count = static_cast<std::int64_t>(worker_.owned_partitions()),
                   .leased_count = c.leased - r.leased,
                   .released_count = c.released - r.released,
                   .broker = worker_.broker_state()};
    const Steady at = now();
    tick.duration = std::chrono::duration_cast<std::chrono::microseconds>(at - since);
    const Steady next = worker_.deadline();
    if (next > at && next != relay::never) {
      tick.backoff = std::chrono::duration_cast<std::chrono::microseconds>(next - at);
    }
    reported_ = c;
    return tick;
  }

  void on_incident(const relay::Incident& incident) override {
    const std::array fields{LogEntry::Field{"worker", options_.worker},
                            LogEntry::Field{"partition", incident.partition.label()},
                            LogEntry::Field{"sequence", std::to_string(incident.sequence.value())},
                            LogEntry::Field{"problem", incident.text}};
    const std::string name = "relay." + std::string{relay::to_string(incident.kind)};
    event_store_.conventions().log->write({.level = level_of(incident.kind),
                                           .name = name,
                                           .message = incident.text,
                                           .fields = fields});
  }

  const RelayOptions options_;
  sqlite::Store& event_store_;
  outbox::RelayStore store_;
  OsRandom random_;
  Mailbox mailbox_;
  relay::Worker worker_;
  std::function<void(const RelayTick&)> listener_;
  Counts reported_;
  bool started_ = false;
  bool stopping_ = false;
};

Relay::Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options)
    : driver_{std::make_unique<Driver>(outbox, publisher, options)} {}

Relay::~Relay() = default;

RelayTick Relay::tick() {
  return driver_->tick();
}
void Relay::run(std::stop_token stop) {
  driver_->run(std::move(stop));
}
void Relay::on_tick(std::function<void(const RelayTick&)> listener) {
  driver_->on_tick(std::move(listener));
}
const std::string& Relay::worker() const noexcept {
  return driver_->worker();
}

}  // namespace stela
