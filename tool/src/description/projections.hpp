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

/// An event that a projector retries, stopped at, or parked.
struct FailedEvent {
  std::string projector = {};
  /// 0 if the projector stopped without an event.
  GlobalSequence sequence = {};
  /// Empty if the event doesn't exist.
  std::string type = {};
  std::string_view state = {};
  int attempts = 0;
  /// The time of the first failure, or of parking.
  std::optional<Timestamp> since = {};
  std::string error = {};
};

extern const Description<ProjectorStatus> projector;
extern const Description<FailedEvent> failed_event;
extern const Description<RunnerTick> runner_tick;
extern const Description<EventTypeCount> events_of_type;

}  // namespace description
}  // namespace stela::tool
