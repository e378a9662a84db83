#include <stela/framework/error.hpp>
#include <stela/outbox/relay.hpp>

#include "database/database.hpp"
#include "database/host.hpp"
#include "database/owner.hpp"
#include "driver/mailbox.hpp"
#include "follow/trouble.hpp"
#include "relay/worker.hpp"
#include "tables/relay_store.hpp"
#include "tables/upkeep.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace stela {

using outbox::PurgeOptions;
using relay::Counts;
using relay::Mailbox;
using relay::Steady;

namespace {

/// How often entries older than `retention` are purged, and the most transactions at a time.
constexpr auto first_purge_after = std::chrono::minutes{1};
constexpr auto purge_every = std::chrono::hours{1};
constexpr int purge_steps = 100;

RelayOptions with_name(RelayOptions options) {
  if (options.worker.empty()) options.worker = host::make_worker_name();
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

/// Drives a worker's core with time, answers and commits.
class Relay::Driver final : public relay::Observer {
 public:
  Driver(Outbox& outbox, Publisher& publisher, const RelayOptions& options)
      : options_{with_name(options)},
        event_store_{outbox.store()},
        publisher_{publisher},
        store_{outbox.store(), outbox.leasing()},
        mailbox_{event_store_},
        worker_{options_,
                outbox.fence(),
                {store_, publisher, event_store_.database().clock(), system_random(), *this,
                 mailbox_}} {
    check(options_);
    if (!publisher.can(outbox.fence())) {
      throw UsageError{"this database's outbox has the fence '" +
                       std::string{to_string(outbox.fence())} +
                       "', which this publisher can't keep"};
    }
    if (const Codec codec = event_store_.conventions().codec; !publisher.can(codec)) {
      throw UsageError{"this database keeps its payloads as '" + std::string{to_string(codec)} +
                       "', which this publisher isn't set up to send; tell it the codec if the "
                       "receivers can read it"};
    }
  }

  RelayTick run_once() {
    begin();
    const Steady begun = now();
    step();
    while (is_busy()) {
      mailbox_.wait_until(worker_.deadline());
      step();
    }
    return report(now() - begun);
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake{stop, [this] { mailbox_.wake(); }};
    begin();
    Steady reported = now();
    // Work since the last report, without idle waits.
    std::chrono::nanoseconds worked{0};
    while (!worker_.is_stopped()) {
      if (stop.stop_requested() && !std::exchange(stopping_, true)) worker_.stop();
      const Steady begun = now();
      step();
      const Steady stepped = now();
      worked += stepped - begun;
      if (did_something() || stepped >= reported + options_.idle_backoff) {
        const RelayTick tick = report(std::exchange(worked, {}));
        if (listener_) listener_(tick);
        reported = stepped;
      }
      const bool waits_for_answers = is_busy();
      if (!worker_.is_stopped()) mailbox_.wait_until(worker_.deadline());
      if (waits_for_answers) worked += now() - stepped;
    }
    const RelayTick last = report(worked);
    if (listener_) listener_(last);
    end();
  }

  /// Hands over the partitions that `run_once` took, except those with messages in flight: their
  /// leases must run out.
  void leave() noexcept {
    if (!started_) return;
    if (!is_busy()) hand_over();
    // Ignores answers to messages still in flight.
    publisher_.disconnect();
    end();
  }

  void on_tick(std::function<void(const RelayTick&)> listener) { listener_ = std::move(listener); }
  const std::string& worker() const noexcept { return options_.worker; }

 private:
  Steady now() const { return event_store_.database().clock().steady_now(); }

  void begin() {
    maker_.check();
    if (started_) return;
    if (publisher_.is_in_use_.exchange(true)) {
      throw UsageError{
          "another relay of this process works with this publisher; give each relay a publisher of "
          "its own"};
    }
    started_ = true;
    worker_.start();
    next_purge_ = now() + first_purge_after;
  }

  void end() noexcept {
    started_ = stopping_ = false;
    publisher_.is_in_use_ = false;
  }

  void hand_over() noexcept try {
    worker_.stop();
    worker_.run_due();
  } catch (...) {
    // As if the process had been killed, the leases run out.
  }

  /// Purges a little at a time, because leases must be renewed meanwhile.
  void purge_if_due() {
    if (now() < next_purge_) return;
    next_purge_ = now() + purge_every;
    try {
      const PurgeOptions what{.older_than = options_.retention, .max_steps = purge_steps};
      const Purged purged = outbox::purge(event_store_, what);
      purged_ += purged.batches + purged.actions;
    } catch (const SchemaMismatch&) {
      throw;
    } catch (const Error& e) {
      on_incident({.kind = relay::Incident::Kind::store_trouble, .text = e.what()});
    }
  }

  void step() {
    for (const Answer& answer : mailbox_.answers()) worker_.on_answer(answer);
    worker_.run_due();
    purge_if_due();
  }

  /// Something is in flight, or the connection is still being opened.
  bool is_busy() const { return !worker_.is_idle() || worker_.is_connecting(); }

  bool did_something() const {
    const Counts& counts = worker_.counts();
    return counts.claimed != reported_.claimed || counts.published != reported_.published ||
           counts.retried != reported_.retried || counts.parked != reported_.parked ||
           counts.leased != reported_.leased || counts.released != reported_.released;
  }

  RelayTick report(std::chrono::nanoseconds worked) {
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
                   .purged = std::exchange(purged_, 0),
                   .purged_stale = c.purged_workers - r.purged_workers,
                   .active_workers = static_cast<std::int64_t>(worker_.active_workers()),
                   .desired_count = static_cast<std::int64_t>(worker_.wanted_partitions()),
                   .owned_count = static_cast<std::int64_t>(worker_.owned_partitions()),
                   .leased_count = c.leased - r.leased,
                   .released_count = c.released - r.released,
                   .broker = worker_.broker_status(),
                   .store_refusal = std::exchange(refusal_, {})};
    const Steady at = now();
    tick.duration = std::chrono::duration_cast<std::chrono::microseconds>(worked);
    const Steady next = worker_.deadline();
    if (next > at && next != relay::never) {
      tick.backoff = std::chrono::duration_cast<std::chrono::microseconds>(next - at);
    }
    reported_ = c;
    tell(tick);
    return tick;
  }

  void tell(const RelayTick& tick) const noexcept {
    MetricSink& metrics = *event_store_.conventions().metrics;
    metrics.count("stela_worker_ticks_total", 1, {});
    metrics.count("stela_worker_claimed_total", tick.claimed, {});
    metrics.count("stela_worker_published_total", tick.published, {});
    metrics.count("stela_worker_retried_total", tick.retried, {});
    metrics.count("stela_worker_parked_total", tick.parked, {});
    metrics.count("stela_worker_skipped_total", tick.skipped, {});
    metrics.count("stela_worker_fenced_total", tick.fenced, {});
    metrics.count("stela_worker_read_backs_total", tick.read_backs, {});
    metrics.observe("stela_worker_tick_duration_seconds",
                    std::chrono::duration<double>{tick.duration}.count(), {});
  }

  void on_incident(const relay::Incident& incident) override {
    if (incident.is_lasting) refusal_ = incident.text;
    // A full disk would be reported at every turn.
    if (incident.kind == relay::Incident::Kind::store_trouble &&
        !troubles_.lets_through(incident.text, now())) {
      return;
    }
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

  const database::OwningProcess maker_;
  const RelayOptions options_;
  Store& event_store_;
  Publisher& publisher_;
  outbox::RelayStore store_;
  Mailbox mailbox_;
  follow::Repetition troubles_;
  relay::Worker worker_;
  std::function<void(const RelayTick&)> listener_;
  Counts reported_;
  std::string refusal_;
  Steady next_purge_{};
  std::int64_t purged_ = 0;
  bool started_ = false;
  bool stopping_ = false;
};

Relay::Relay(Outbox& outbox, Publisher& publisher, const RelayOptions& options)
    : driver_{std::make_unique<Driver>(outbox, publisher, options)} {}

Relay::~Relay() {
  driver_->leave();
}

RelayTick Relay::run_once() {
  return driver_->run_once();
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
