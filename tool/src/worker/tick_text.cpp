#include "worker/tick_text.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"

namespace stela::tool {

std::string to_line(const TickReport& report) {
  const RelayTick& tick = report.tick;
  std::string text = to_string(report.at).substr(0, 19) + "Z ";
  text.append(report.state).append(": claimed ").append(in_digits(tick.claimed));
  text.append(", published ").append(in_digits(tick.published));
  text.append(", retried ").append(in_digits(tick.retried));
  text.append(", parked ").append(in_digits(tick.parked));
  text.append(" in ").append(in_words(tick.duration));
  text.append("; pending ").append(waiting_in_words(report.status));
  if (report.status.lag) text.append(", oldest ").append(in_words(*report.status.lag));
  text.append("; owns ").append(in_digits(tick.owned_count)).append(" of ");
  text.append(in_digits(tick.desired_count))
      .append("; broker ")
      .append(in_one_line(to_string(tick.broker)));
  if (!report.store_problem.empty()) {
    text.append("; database ").append(in_one_line(report.store_problem));
  }
  return text;
}

}  // namespace stela::tool
