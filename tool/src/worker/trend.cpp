#include "worker/trend.hpp"

#include "commands/outbox_text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

constexpr auto kept = 60min;
/// A status that follows the previous one more closely replaces it.
constexpr auto step = 5s;
/// The span that the pace is computed from.
constexpr auto paced = 60s;
/// Over a shorter span, a single batch would change everything.
constexpr auto least = 2s;
/// Longer estimates count as not draining.
constexpr double longest_drain = 100.0 * 86'400;

std::int64_t moving_in(const OutboxStatus& status) {
  std::int64_t moving = waiting_in(status);
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.stopped) moving -= waiting_in(partition);
  }
  return moving;
}

/// True if the batch was published after the status was read.
bool is_later(const PublishedBatch& batch, const OutboxStatus& status) {
  if (batch.redelivery != 0) return batch.published_at > status.at;
  return std::any_of(status.partitions.begin(), status.partitions.end(), [&](const auto& one) {
    return one.id == batch.partition && one.published_through < batch.last;
  });
}

double seconds_between(Timestamp begin, Timestamp end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void Trend::add(const OutboxStatus& status, const Totals& own) {
  // The clock of the database, or the outbox itself, was set back.
  if (!seen_.empty() &&
      (status.at < seen_.back().at || status.published < seen_.back().counts[Throughput::all])) {
    seen_.clear();
  }
  if (seen_.size() > 1 && status.at - seen_[seen_.size() - 2].at < step) seen_.pop_back();
  seen_.push_back(
      {.at = status.at,
       .counts = {status.published, own.claimed, own.published, own.retried + own.parked},
       .waiting = waiting_in(status),
       .moving = moving_in(status),
       .is_counted = !status.is_pending_lower_bound});
  // Keeps one status from before the hour as its starting point.
  while (seen_.size() > 1 && seen_[1].at <= seen_.back().at - kept) seen_.pop_front();
}

void Trend::add_past(const OutboxStatus& status, const std::vector<PublishedBatch>& batches,
                     bool is_whole) {
  std::int64_t published = status.published;
  for (const PublishedBatch& batch : batches) {
    if (is_later(batch, status)) continue;
    is_whole = is_whole || batch.published_at <= status.at - kept;
    if (batch.published_at <= status.at - kept) break;
    if (seen_.empty() || seen_.front().at - batch.published_at >= step) {
      seen_.push_front({.at = std::min(batch.published_at, status.at),
                        .counts = {published},
                        .is_counted = false});
    }
    published -= batch.count;
  }
  if (is_whole) {
    seen_.push_front({.at = status.at - kept, .counts = {published}, .is_counted = false});
  }
}

const Trend::Seen& Trend::seen_at(Timestamp time) const {
  const auto later = std::upper_bound(seen_.begin(), seen_.end(), time,
                                      [](Timestamp t, const Seen& seen) { return t < seen.at; });
  return later == seen_.begin() ? seen_.front() : *std::prev(later);
}

std::optional<double> Trend::rate(Throughput::Series series, Timestamp begin, Timestamp end) const {
  begin = std::max(begin, seen_.front().at);
  if (end - begin < least) return {};
  const std::int64_t rise = seen_at(end).counts[series] - seen_at(begin).counts[series];
  return static_cast<double>(rise) / seconds_between(begin, end);
}

Throughput Trend::throughput() const {
  if (seen_.empty()) return {};
  const Timestamp now = seen_.back().at;
  Throughput throughput{.now = rate(Throughput::all, now - 10s, now)};
  constexpr std::array<std::chrono::minutes, 4> spans{0min, 1min, 5min, 60min};
  for (const auto series :
       {Throughput::all, Throughput::claimed, Throughput::published, Throughput::failed}) {
    for (std::size_t i = 1; i < spans.size(); ++i) {
      if (now - seen_.front().at <= spans[i - 1]) break;
      throughput.speeds[series][i - 1] = rate(series, now - spans[i], now);
    }
  }
  Timestamp end = now;
  Timestamp begin = now - now.time_since_epoch() % 2min;
  for (auto piece = throughput.curve.rbegin(); piece != throughput.curve.rend(); ++piece) {
    *piece = rate(Throughput::all, begin, end);
    end = std::exchange(begin, begin - 2min);
  }
  return throughput;
}

Pace Trend::pace() const {
  if (seen_.empty()) return {};
  const Seen& last = seen_.back();
  const auto counted = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) {
    return s.is_counted && s.at >= last.at - paced;
  });
  if (!last.is_counted || last.at - counted->at < least) return {};
  Pace pace;
  pace.growth =
      static_cast<double>(last.waiting - counted->waiting) / seconds_between(counted->at, last.at);
  const auto moving = static_cast<double>(last.moving);
  if (moving > 0 && pace.growth < 0 && moving / -pace.growth < longest_drain) {
    pace.time_to_drain = std::chrono::seconds{std::llround(std::ceil(moving / -pace.growth))};
  }
  return pace;
}

}  // namespace stela::tool
