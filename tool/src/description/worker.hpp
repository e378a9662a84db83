// Descriptions of a worker: its condition and its ticks.
#pragma once

#include "description/description.hpp"
#include "worker/health.hpp"
#include "worker/tick_text.hpp"

namespace stela::tool::description {

extern const Description<Condition> condition;
extern const Description<TickReport> tick;

}  // namespace stela::tool::description
