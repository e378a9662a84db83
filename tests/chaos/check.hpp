// What must hold when everything has drained.
#pragma once

#include "chaos/settings.hpp"
#include "nats/jetstream.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::chaos {

struct Findings {
  std::int64_t appended = 0;
  std::int64_t acknowledged = 0;
  /// Appends of which their process doesn't know what became.
  std::int64_t unanswered = 0;
  std::int64_t published = 0;
  /// Copies in the streams: only mode `none` may have some.
  std::int64_t copies = 0;
  std::int64_t effects = 0;
  std::vector<std::string> violations;
};

/// Reads the databases, the ledgers and the streams, and compares them.
Findings check(const Settings& settings, test::JetStream& broker);

}  // namespace stela::chaos
