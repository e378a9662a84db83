// What the dashboard shows, and what the person in front of it chose.
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

/// What the workers of this process do.
struct OwnWork {
  /// The worker's name, which several in one process number.
  std::string worker = {};
  std::string broker_url = {};
  /// As state_of says it.
  std::string state = {};
  std::chrono::seconds window{0};
  std::chrono::microseconds lease_ttl{0};
  Figures done = {};
};

struct View {
  /// What it is called by: "stela outbox work".
  std::string command = {};
  /// What commands begin with: "stela".
  std::string program = {};
  std::string database = {};
  /// Unset for who only looks.
  std::optional<OwnWork> own = {};
  OutboxStatus status = {};
  Pace pace = {};
  Throughput throughput = {};
  /// Those that stand, and those that this process met.
  std::vector<RecentError> errors = {};
  /// What is judged beside the status.
  Facts beside = {};
  /// Empty if the database answers.
  std::string store_problem = {};
  /// What the database said last; it doesn't answer now.
  bool is_stale = false;
};

/// What partitions are sorted by; those in trouble come first with any of them.
enum class SortKey : std::uint8_t { pending, oldest, parked, owner, label };

struct Looks {
  bool help = false;
  bool paused = false;
  bool typing = false;
  /// Healthy partitions have a row each, also where not all of them fit.
  bool shows_all = false;
  SortKey sort = SortKey::pending;
  /// Only partitions, problems and errors that contain it.
  std::string filter = {};
  /// Lines that are scrolled past.
  std::size_t scroll = 0;
};

struct Size {
  int width = 80;
  int height = 24;
};

}  // namespace stela::tool
