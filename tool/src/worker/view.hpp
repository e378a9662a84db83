// The dashboard's data, and the user's choices.
#pragma once

#include "diagnosis/diagnose.hpp"
#include "worker/statistics.hpp"
#include "worker/trend.hpp"

#include <stela/outbox/messages.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stela::tool {

/// The work of this process.
struct OwnWork {
  /// The worker's name. Several workers in one process add a number.
  std::string worker = {};
  std::string broker_url = {};
  /// As returned by state_of.
  std::string state = {};
  std::chrono::seconds window{0};
  std::chrono::microseconds lease_ttl{0};
  Figures done = {};
};

struct View {
  /// The command that it runs: "stela outbox work".
  std::string command = {};
  /// The beginning of commands: "stela".
  std::string program = {};
  std::string database = {};
  /// Unset in a process that only watches.
  std::optional<OwnWork> own = {};
  OutboxStatus status = {};
  Pace pace = {};
  Throughput throughput = {};
  /// Persisting errors, and those that this process met.
  std::vector<RecentError> errors = {};
  /// The facts to judge beside the status.
  Facts beside = {};
  /// Empty if the database answers.
  std::string store_problem = {};
  /// The data is the last known, because the database doesn't answer now.
  bool is_stale = false;
};

/// The sort key of partitions. Those in trouble always come first.
enum class SortKey : std::uint8_t { pending, oldest, parked, owner, label };

struct Looks {
  bool help = false;
  bool paused = false;
  bool typing = false;
  /// Shows a row for each healthy partition, even if they don't all fit.
  bool shows_all = false;
  SortKey sort = SortKey::pending;
  /// Shows only partitions, problems and errors that contain it.
  std::string filter = {};
  /// The number of lines scrolled past.
  std::size_t scroll = 0;
};

struct Size {
  int width = 80;
  int height = 24;
};

}  // namespace stela::tool
