// Descriptions of projectors and their runners.
#pragma once

#include "description/description.hpp"

#include <stela/projections/operations.hpp>
#include <stela/projections/replayer.hpp>
#include <stela/projections/runner.hpp>

#include <string>

namespace stela::tool {

/// "halted at 17: …", or "-" if nothing is wrong.
std::string problem_of(const ProjectorStatus& status);

namespace description {

extern const Description<ProjectorStatus> projector;
extern const Description<RunnerTick> runner_tick;
extern const Description<EventTypeCount> events_of_type;

}  // namespace description
}  // namespace stela::tool
