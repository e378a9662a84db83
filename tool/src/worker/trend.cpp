#include "worker/trend.hpp"

#include "commands/outbox_text.hpp"

#include <algorithm>
#include <cmath>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

constexpr auto kept = 60s;
/// Less tells nothing: one batch more or less changes all.
constexpr auto least = 2s;
/// What would take longer doesn't drain.
constexpr double longest_drain = 100.0 * 86'400;

std::int64_t moving_in(const OutboxStatus& status) {
  std::int64_t moving = waiting_in(status);
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.stopped) moving -= waiting_in(partition);
  }
  return moving;
}

double seconds_between(Timestamp begin, Timestamp end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void Trend::add(const OutboxStatus& status) {
  // The clock of the database was set back, or its logs were.
  if (!seen_.empty() &&
      (status.at < seen_.back().at || status.published < seen_.back().published)) {
    seen_.clear();
  }
  if (!seen_.empty() && status.at - seen_.back().at < 200ms) return;
  seen_.push_back({status.at, status.published, waiting_in(status), moving_in(status),
                   !status.is_pending_lower_bound});
  while (seen_.back().at - seen_.front().at > kept) seen_.pop_front();
}

Pace Trend::pace() const {
  if (seen_.empty() || seen_.back().at - seen_.front().at < least) return {};
  const Seen& last = seen_.back();
  const auto published = static_cast<double>(last.published - seen_.front().published);
  Pace pace{.published = published / seconds_between(seen_.front().at, last.at)};
  const auto counted =
      std::find_if(seen_.begin(), seen_.end(), [](const Seen& s) { return s.is_counted; });
  if (!last.is_counted || last.at - counted->at < least) return pace;
  pace.growth =
      static_cast<double>(last.waiting - counted->waiting) / seconds_between(counted->at, last.at);
  const auto moving = static_cast<double>(last.moving);
  if (moving > 0 && pace.growth < 0 && moving / -pace.growth < longest_drain) {
    pace.time_to_drain = std::chrono::seconds{std::llround(std::ceil(moving / -pace.growth))};
  }
  return pace;
}

}  // namespace stela::tool
