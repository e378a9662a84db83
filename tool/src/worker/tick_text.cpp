#include "worker/tick_text.hpp"

#include "cli/text.hpp"

#include <stela/framework/codec/json_writer.hpp>

namespace stela::tool {
namespace {

double in_ms(std::chrono::microseconds duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

std::int64_t pending_of(const OutboxStatus& status) {
  return status.pending + status.redeliveries;
}

}  // namespace

std::string to_json(const TickReport& report) {
  const RelayTick& tick = report.tick;
  std::string out;
  json::ObjectWriter object{out};
  object.add("claimed", tick.claimed)
      .add("published", tick.published)
      .add("failed", tick.failed())
      .add("duration_ms", in_ms(tick.duration))
      .add("backoff_ms", in_ms(tick.backoff))
      .add("renewed_heartbeat", tick.renewed_heartbeat)
      .add("purged_stale", tick.purged_stale)
      .add("active_workers", tick.active_workers)
      .add("desired_count", tick.desired_count)
      .add("owned_count", tick.owned_count)
      .add("leased_count", tick.leased_count)
      .add("released_count", tick.released_count)
      .add("ts", to_string(report.at))
      .add("retried", tick.retried)
      .add("parked", tick.parked)
      .add("fenced", tick.fenced)
      .add("read_backs", tick.read_backs)
      .add("pending", pending_of(report.status));
  if (report.status.lag) {
    object.add("oldest_pending_s", static_cast<double>(report.status.lag->count()) / 1e6);
  } else {
    object.key("oldest_pending_s").append("null");
  }
  object.add("broker", in_one_line(tick.broker))
      .add("state", report.state)
      .add("worker", in_one_line(report.worker))
      .close();
  return out;
}

std::string to_line(const TickReport& report) {
  const RelayTick& tick = report.tick;
  std::string text = to_string(report.at).substr(0, 19) + "Z ";
  text.append(report.state).append(": claimed ").append(in_digits(tick.claimed));
  text.append(", published ").append(in_digits(tick.published));
  text.append(", retried ").append(in_digits(tick.retried));
  text.append(", parked ").append(in_digits(tick.parked));
  text.append(" in ").append(in_words(tick.duration));
  text.append("; pending ").append(in_digits(pending_of(report.status)));
  if (report.status.lag) text.append(", oldest ").append(in_words(*report.status.lag));
  text.append("; owns ").append(in_digits(tick.owned_count)).append(" of ");
  text.append(in_digits(tick.desired_count)).append("; broker ").append(in_one_line(tick.broker));
  return text;
}

}  // namespace stela::tool
