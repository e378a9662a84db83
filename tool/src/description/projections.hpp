// Descriptions of projectors and their runners.
#pragma once

#include "description/description.hpp"

#include <stela/projections/operations.hpp>
#include <stela/projections/replayer.hpp>
#include <stela/projections/runner.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// "stopped at 17: …", or "-" if nothing is wrong.
std::string problem_of(const ProjectorStatus& status);

namespace description {

/// An event that a projector tries again, stopped at, or parked.
struct FailedEvent {
  std::string projector = {};
  /// 0: the projector stopped without one.
  GlobalSequence sequence = {};
  /// Empty if the event isn't there.
  std::string type = {};
  std::string_view state = {};
  int attempts = 0;
  /// When it failed first, or was parked.
  std::optional<Timestamp> since = {};
  std::string error = {};
};

extern const Description<ProjectorStatus> projector;
extern const Description<FailedEvent> failed_event;
extern const Description<RunnerTick> runner_tick;
extern const Description<EventTypeCount> events_of_type;

}  // namespace description
}  // namespace stela::tool
