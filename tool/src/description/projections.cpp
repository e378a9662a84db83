#include "description/projections.hpp"

namespace stela::tool {
namespace {

using P = ProjectorStatus;

constexpr Field<P> projector_fields[] = {
    field<&P::name>("projector"),
    field<&P::build>("build"),
    field<&P::version>("version", {.title = "v"}),
    field<&P::kind>("kind"),
    field<&P::state>("state"),
    field<&P::position>("position"),
    field<&P::lag_events>("lag_events", {.title = "lag events",
                                         .kind = Kind::count,
                                         .metric = {.name = "stela_projector_lag_events",
                                                    .help = "Events that aren't projected yet."}}),
    field<&P::lag>("lag_s",
                   {.title = "lag",
                    .metric = {.name = "stela_projector_lag_seconds",
                               .help = "Age of the first event that isn't projected yet."}}),
    field<&P::owner>("owner", {.absent = "-"}),
    field<&P::halted>("halted",
                      {.metric = {.name = "stela_projector_halted",
                                  .help = "1 while an event that it can't take holds it up."}}),
    field<&P::failing>("failing"),
    field<&P::error>("error", {.kind = Kind::untrusted}),
    field<&P::attempts>("attempts"),
    field<&P::parked>("parked", {.kind = Kind::count,
                                 .metric = {.name = "stela_projector_parked_events",
                                            .help = "Events that it put aside."}}),
    field<&P::skipped>("skipped"),
    field<problem_of>("problem", {.is_text_only = true}),
};

constexpr Field<RunnerTick> tick_fields[] = {
    field<&RunnerTick::scanned>("scanned"),
    field<&RunnerTick::commits>("commits"),
    field<&RunnerTick::failed>("failed"),
    field<&RunnerTick::halted>("halted"),
    field<&RunnerTick::parked>("parked"),
    field<&RunnerTick::left_to_newer>("left_to_newer"),
    field<&RunnerTick::timers_fired>("timers_fired"),
    field<&RunnerTick::timers_failed>("timers_failed"),
    field<&RunnerTick::timers_parked>("timers_parked"),
};

constexpr Field<EventTypeCount> type_fields[] = {
    field<&EventTypeCount::type>("type"),
    field<&EventTypeCount::events>("events", {.kind = Kind::count}),
};

}  // namespace

std::string problem_of(const P& status) {
  if (status.failing.value() == 0) return status.halted ? "halted: " + status.error : "-";
  // Without an attempt it waits for a runner that knows a version, or for memory.
  const char* const how = status.halted         ? "halted at "
                          : status.attempts > 0 ? "failing at "
                                                : "waiting at ";
  return how + std::to_string(status.failing.value()) + ": " + status.error;
}

namespace description {

constexpr Description<P> projector{
    projector_fields,
    {.table = "projector kind version state position lag_events lag_s parked owner problem",
     .metrics = "lag_s lag_events halted parked"}};
constexpr Description<RunnerTick> runner_tick{tick_fields};
constexpr Description<EventTypeCount> events_of_type{type_fields, {.table = "type events"}};

}  // namespace description
}  // namespace stela::tool
