// Descriptions of processes and their timers.
#pragma once

#include "description/description.hpp"

#include <stela/projections/timers.hpp>

namespace stela::tool::description {

extern const Description<ProcessStatus> process;
extern const Description<TimerStatus> timer;
extern const Description<TimerHold> timer_hold;
extern const Description<OperatorAction> timer_action;

}  // namespace stela::tool::description
