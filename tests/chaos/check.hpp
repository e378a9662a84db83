// What must hold when everything has drained.
#pragma once

#include "chaos/deletions.hpp"
#include "chaos/settings.hpp"

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

/// Reads the databases, the ledgers and the streams of the broker at `url`, and compares them.
Findings check(const Settings& settings, const std::string& url,
               const std::vector<Deletion>& deletions);

}  // namespace stela::chaos
