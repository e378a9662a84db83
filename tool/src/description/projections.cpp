#include "description/projections.hpp"

namespace stela::tool {
namespace {

constexpr Field<ProjectorStatus> projector_fields[] = {
    field<&ProjectorStatus::name>("projector"),
    field<&ProjectorStatus::build>("build"),
    field<&ProjectorStatus::version>("projector_version", {.title = "v"}),
    field<&ProjectorStatus::kind>("kind"),
    field<&ProjectorStatus::state>("state"),
    field<&ProjectorStatus::position>("position"),
    field<&ProjectorStatus::lag_events>("lag_events",
                                        {.title = "lag events",
                                         .kind = Kind::count,
                                         .metric = {.name = "stela_projector_lag_events",
                                                    .help = "Events that aren't projected yet."}}),
    field<&ProjectorStatus::lag>(
        "lag_s",
        {.title = "lag",
         .metric = {.name = "stela_projector_lag_seconds",
                    .help = "Age of the first event that isn't projected yet; 0 without one."}}),
    field<&ProjectorStatus::owner>("owner", {.absent = "-"}),
    field<&ProjectorStatus::stopped>(
        "stopped", {.metric = {.name = "stela_projector_stopped",
                               .help = "1 while an event that it can't take holds it up."}}),
    field<[](const ProjectorStatus& one) { return unless_empty(one.failing); }>("failing"),
    field<&ProjectorStatus::error>("error", {.kind = Kind::untrusted}),
    field<&ProjectorStatus::attempts>("attempts"),
    field<&ProjectorStatus::parked>("parked", {.kind = Kind::count,
                                               .metric = {.name = "stela_projector_parked_events",
                                                          .help = "Events that it put aside."}}),
    field<&ProjectorStatus::skipped>("skipped"),
    field<problem_of>("problem", {.is_text_only = true}),
};

constexpr Field<description::FailedEvent> failed_fields[] = {
    field<&description::FailedEvent::projector>("projector"),
    field<[](const description::FailedEvent& one) { return unless_empty(one.sequence); }>(
        "sequence", {.title = "event"}),
    field<&description::FailedEvent::type>("type"),
    field<&description::FailedEvent::state>("state", {.kind = Kind::word}),
    field<&description::FailedEvent::attempts>("attempts"),
    field<&description::FailedEvent::since>("since_at", {.title = "since"}),
    field<&description::FailedEvent::error>("error", {.kind = Kind::untrusted, .most = 60}),
};

constexpr Field<RunnerTick> projection_tick_fields[] = {
    field<&RunnerTick::scanned>("scanned"),
    field<&RunnerTick::commits>("commits"),
    field<&RunnerTick::failed>("failed"),
    field<&RunnerTick::stopped>("stopped"),
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

std::string problem_of(const ProjectorStatus& status) {
  if (status.failing.value() == 0) return status.stopped ? "stopped: " + status.error : "-";
  // Without an attempt, it waits for a runner that knows the version, or for memory.
  const char* const how = status.stopped        ? "stopped at "
                          : status.attempts > 0 ? "failing at "
                                                : "waiting at ";
  return how + std::to_string(status.failing.value()) + ": " + status.error;
}

namespace description {

constexpr Description<ProjectorStatus> projector{
    projector_fields,
    {.table =
         "projector kind projector_version state position lag_events lag_s parked owner problem",
     .metrics = "lag_s lag_events stopped parked"}};
constexpr Description<FailedEvent> failed_event{
    failed_fields, {.table = "projector sequence state type attempts since_at error"}};
constexpr Description<RunnerTick> runner_tick{projection_tick_fields};
constexpr Description<EventTypeCount> events_of_type{type_fields, {.table = "type events"}};

}  // namespace description
}  // namespace stela::tool
