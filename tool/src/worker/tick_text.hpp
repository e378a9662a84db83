// A tick as one line of text or JSON.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/outbox/messages.hpp>
#include <stela/outbox/relay.hpp>

#include <string>
#include <string_view>

namespace stela::tool {

struct TickReport {
  const RelayTick& tick;
  const OutboxStatus& status;
  /// "relaying", "idle", …
  std::string_view state;
  std::string_view worker;
  Timestamp at;
  /// Why the database doesn't answer, or takes no writes. Empty if all is well.
  std::string_view store_problem;
};

std::string to_line(const TickReport& report);

}  // namespace stela::tool
