#include "worker/trend.hpp"

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
  std::int64_t moving = status.pending + status.redeliveries;
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.stopped) moving -= partition.pending + partition.redeliveries;
  }
  return moving;
}

}  // namespace

void Trend::add(const OutboxStatus& status) {
  // The clock of the database was set back, or its logs were.
  if (!seen_.empty() &&
      (status.at < seen_.back().at || status.published < seen_.back().published)) {
    seen_.clear();
  }
  if (!seen_.empty() && status.at - seen_.back().at < 200ms) return;
  seen_.push_back(
      {status.at, status.published, status.pending + status.redeliveries, moving_in(status)});
  while (seen_.back().at - seen_.front().at > kept) seen_.pop_front();
}

Pace Trend::pace() const {
  if (seen_.empty() || seen_.back().at - seen_.front().at < least) return {};
  const double seconds = std::chrono::duration<double>(seen_.back().at - seen_.front().at).count();
  const auto published = static_cast<double>(seen_.back().published - seen_.front().published);
  const auto grown = static_cast<double>(seen_.back().waiting - seen_.front().waiting);
  Pace pace{.published = published / seconds, .growth = grown / seconds};
  const auto moving = static_cast<double>(seen_.back().moving);
  if (moving > 0 && pace.growth < 0 && moving / -pace.growth < longest_drain) {
    pace.time_to_drain = std::chrono::seconds{std::llround(std::ceil(moving / -pace.growth))};
  }
  return pace;
}

}  // namespace stela::tool
