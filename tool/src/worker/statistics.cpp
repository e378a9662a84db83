#include "worker/statistics.hpp"

#include <algorithm>
#include <charconv>

namespace stela::tool {
namespace {

/// Percentiles are computed from this many latencies.
constexpr std::size_t kept_latencies = 1'000;
constexpr std::chrono::minutes latencies_shown{1};

std::optional<std::chrono::microseconds> percentile(std::vector<std::chrono::microseconds> sorted,
                                                    double part) {
  if (sorted.empty()) return std::nullopt;
  const auto index = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

/// Connected is best; all other states are worse.
bool is_worse(const BrokerStatus& a, const std::optional<BrokerStatus>& b) {
  return !b || (b->is_connected() && !a.is_connected());
}

}  // namespace

void Totals::add(const RelayTick& tick) noexcept {
  claimed += tick.claimed;
  published += tick.published;
  retried += tick.retried;
  parked += tick.parked;
  skipped += tick.skipped;
  fenced += tick.fenced;
  read_backs += tick.read_backs;
  purged_stale += tick.purged_stale;
  leased += tick.leased_count;
  released += tick.released_count;
}

Statistics::Statistics(const Options& options)
    : options_{options}, relays_(static_cast<std::size_t>(options.relays)) {}

void Statistics::add(int relay, const RelayTick& tick, Steady now) {
  const std::lock_guard lock{mutex_};
  Relay& of = relays_[static_cast<std::size_t>(relay)];
  of.last = tick;
  if (tick.renewed_heartbeat || !of.has_ticked) of.heartbeat = now;
  of.has_ticked = true;
  ever_.add(tick);
  ++ticks_ever_;
  recent_.push_back({now, tick});
  const auto kept = options_.window;
  while (recent_.size() > 1 && (kept.count() == 0 || recent_.front().at < now - kept)) {
    recent_.pop_front();
  }
}

void Statistics::add_publish_latency(std::chrono::microseconds latency) {
  const std::lock_guard lock{mutex_};
  publish_latency_.add(latency);
}

void Statistics::add_end_to_end(std::chrono::microseconds latency, Steady now) {
  const std::lock_guard lock{mutex_};
  end_to_end_.add(latency);
  latencies_.push_back({now, latency});
  if (latencies_.size() > kept_latencies) latencies_.pop_front();
}

void Statistics::write(const LogEntry& entry) noexcept try {
  if (options_.next != nullptr) options_.next->write(entry);
  if (entry.level < LogLevel::warning) return;
  RecentError trouble{.at = system_clock().now(), .message = std::string{entry.message}};
  for (const LogEntry::Field& field : entry.fields) {
    if (field.name == "partition") trouble.subject = field.value;
    if (field.name == "sequence") {
      const char* const end = field.value.data() + field.value.size();
      std::from_chars(field.value.data(), end, trouble.sequence);
    }
  }
  const std::lock_guard lock{mutex_};
  troubles_.push_front(std::move(trouble));
  if (troubles_.size() > kept_troubles) troubles_.pop_back();
} catch (const std::exception&) {
  // Without memory, one line is missing.
}

Figures Statistics::look(Steady now) const {
  const std::lock_guard lock{mutex_};
  Figures seen{.ever = ever_,
               .ticks_ever = ticks_ever_,
               .troubles = {troubles_.begin(), troubles_.end()},
               .publish_latency = publish_latency_,
               .end_to_end = end_to_end_};
  std::chrono::microseconds duration{0};
  for (const Kept& kept : recent_) {
    if (options_.window.count() > 0 && kept.at < now - options_.window) continue;
    seen.totals.add(kept.tick);
    duration += kept.tick.duration;
    ++seen.ticks;
  }
  if (seen.ticks > 0) seen.mean_duration = duration / seen.ticks;
  for (const Relay& relay : relays_) {
    if (!relay.has_ticked) continue;
    seen.active_workers = std::max(seen.active_workers, relay.last.active_workers);
    seen.wanted += relay.last.desired_count;
    seen.owned += relay.last.owned_count;
    seen.last_backoff = std::max(seen.last_backoff, relay.last.backoff);
    seen.heartbeat_age =
        std::max(seen.heartbeat_age,
                 std::chrono::duration_cast<std::chrono::microseconds>(now - relay.heartbeat));
    if (is_worse(relay.last.broker, seen.broker)) seen.broker = relay.last.broker;
  }
  std::vector<std::chrono::microseconds> sorted;
  for (const Latency& latency : latencies_) {
    if (latency.at >= now - latencies_shown) sorted.push_back(latency.length);
  }
  std::sort(sorted.begin(), sorted.end());
  seen.latency_p50 = percentile(sorted, 0.5);
  seen.latency_p99 = percentile(sorted, 0.99);
  return seen;
}

}  // namespace stela::tool
