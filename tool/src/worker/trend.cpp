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

}  // namespace

void Trend::add(const OutboxStatus& status) {
  // The clock of the database was set back, or its logs were.
  if (!seen_.empty() &&
      (status.at < seen_.back().at || status.published < seen_.back().published)) {
    seen_.clear();
  }
  if (!seen_.empty() && status.at - seen_.back().at < 200ms) return;
  seen_.push_back({status.at, status.published, status.pending + status.redeliveries});
  while (seen_.back().at - seen_.front().at > kept) seen_.pop_front();
}

Pace Trend::pace() const {
  if (seen_.empty() || seen_.back().at - seen_.front().at < least) return {};
  const double seconds = std::chrono::duration<double>(seen_.back().at - seen_.front().at).count();
  const auto published = static_cast<double>(seen_.back().published - seen_.front().published);
  const auto grown = static_cast<double>(seen_.back().waiting - seen_.front().waiting);
  Pace pace{.published = published / seconds, .growth = grown / seconds};
  const auto waiting = static_cast<double>(seen_.back().waiting);
  if (waiting > 0 && pace.growth < 0 && waiting / -pace.growth < longest_drain) {
    pace.time_to_drain = std::chrono::seconds{std::llround(std::ceil(waiting / -pace.growth))};
  }
  return pace;
}

}  // namespace stela::tool
