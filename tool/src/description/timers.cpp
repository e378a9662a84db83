#include "description/timers.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "event_text.hpp"

#include <stela/framework/codec/detail/base64.hpp>

#include <chrono>
#include <optional>

namespace stela::tool {
namespace {

std::string problem_of_process(const ProcessStatus& process) {
  if (process.stopped) return "stopped: " + process.error;
  if (!process.error.empty()) return "retrying: " + process.error;
  if (process.parked > 0) return counted(process.parked, "parked timer");
  return process.parked_events > 0 ? counted(process.parked_events, "parked event") : "-";
}

std::optional<std::chrono::microseconds> oldest_due_of(const ProcessStatus& process) {
  return process.due > 0 ? std::optional{process.oldest_due} : std::nullopt;
}

constexpr Field<ProcessStatus> process_fields[] = {
    field<&ProcessStatus::name>("process"),
    field<&ProcessStatus::position>("position"),
    field<&ProcessStatus::lag_events>("lag_events", {.title = "lag events", .kind = Kind::count}),
    field<&ProcessStatus::lag>("lag_s", {.title = "lag"}),
    field<&ProcessStatus::owner>("owner", {.absent = "-"}),
    field<&ProcessStatus::pending>("pending",
                                   {.kind = Kind::count,
                                    .metric = {.name = "stela_timers_pending",
                                               .help = "Timers that are set and not parked; "
                                                       "10,000 if they are more."}}),
    field<&ProcessStatus::is_pending_lower_bound>("pending_is_lower_bound"),
    field<[](const ProcessStatus& process) {
      return at_least(process.pending, process.is_pending_lower_bound);
    }>("waiting", {.title = "pending", .kind = Kind::count, .is_text_only = true}),
    field<&ProcessStatus::due>(
        "due", {.kind = Kind::count,
                .metric = {.name = "stela_timers_due", .help = "Timers that are due now."}}),
    field<&ProcessStatus::overdue>(
        "overdue", {.kind = Kind::count,
                    .metric = {.name = "stela_timers_overdue",
                               .help = "Timers that have been due for more than a minute."}}),
    field<oldest_due_of>("oldest_due_s",
                         {.title = "oldest due",
                          .metric = {.name = "stela_timers_oldest_due_seconds",
                                     .help = "How long the first of them has been due."}}),
    field<&ProcessStatus::next_due_at>("next_due_at", {.title = "next", .absent = "-"}),
    field<&ProcessStatus::unknown>("unknown",
                                   {.kind = Kind::count,
                                    .metric = {.name = "stela_timers_unknown",
                                               .help = "Timers that wait for a runner of a newer "
                                                       "release."}}),
    field<&ProcessStatus::parked>("parked",
                                  {.kind = Kind::count,
                                   .metric = {.name = "stela_timers_parked",
                                              .help = "Timers that failed and wait for an "
                                                      "operator."}}),
    field<&ProcessStatus::fired>("fired", {.kind = Kind::count,
                                           .metric = {.name = "stela_timers_fired_total",
                                                      .type = "counter",
                                                      .help = "Timers that have fired."}}),
    field<&ProcessStatus::failed>("failed", {.kind = Kind::count,
                                             .metric = {.name = "stela_timer_failures_total",
                                                        .type = "counter",
                                                        .help = "How often a timer has failed."}}),
    field<&ProcessStatus::parked_events>("parked_events",
                                         {.title = "parked events", .kind = Kind::count}),
    field<&ProcessStatus::stopped>("stopped"),
    field<&ProcessStatus::error>("error", {.kind = Kind::untrusted}),
    field<problem_of_process>("problem", {.is_text_only = true}),
};

std::string process_of(const TimerStatus& timer) {
  return timer.name.process;
}
std::string key_of(const TimerStatus& timer) {
  return timer.name.key;
}
std::string kind_of(const TimerStatus& timer) {
  return timer.name.kind;
}
std::optional<std::chrono::microseconds> late_of(const TimerStatus& timer) {
  return timer.late.count() > 0 ? std::optional{timer.late} : std::nullopt;
}
std::string causation_of(const TimerStatus& timer) {
  return timer.causation_id.is_nil() ? std::string{} : timer.causation_id.to_string();
}

std::optional<Json> payload_of(const TimerStatus& timer) {
  return is_json(timer.payload) ? std::optional{Json{minified(timer.payload)}} : std::nullopt;
}
std::string payload_bytes_of(const TimerStatus& timer) {
  std::string text;
  if (!is_json(timer.payload)) base64::append(text, timer.payload);
  return text;
}

constexpr Field<TimerStatus> timer_fields[] = {
    field<process_of>("process"),
    field<key_of>("key", {.kind = Kind::untrusted}),
    field<kind_of>("kind"),
    field<&TimerStatus::version>("schema_version", {.title = "v"}),
    field<&TimerStatus::state>("state"),
    field<&TimerStatus::due_at>("due_at", {.title = "due"}),
    field<late_of>("late_s", {.title = "late", .absent = "-"}),
    field<&TimerStatus::recurrence>("recurrence", {.title = "recurs", .absent = "-"}),
    field<&TimerStatus::attempts>("attempts"),
    field<&TimerStatus::next_attempt_at>("next_attempt_at", {.title = "next attempt"}),
    field<&TimerStatus::error>("error", {.kind = Kind::untrusted, .most = 40}),
    field<&TimerStatus::set_at>("set_at", {.title = "set"}),
    field<&TimerStatus::correlation_id>("correlation_id",
                                        {.title = "correlation", .kind = Kind::untrusted}),
    field<causation_of>("causation_id", {.title = "set by event"}),
    field<&TimerStatus::actor>("actor", {.kind = Kind::untrusted}),
    field<payload_of>("payload"),
    field<payload_bytes_of>("payload_base64"),
};

using H = TimerHold;
constexpr Field<H> hold_fields[] = {
    field<&H::reason>("reason"),
    field<&H::since>("since_at", {.title = "since"}),
    field<&H::detail>("detail", {.kind = Kind::untrusted}),
};

using A = OperatorAction;
constexpr Field<A> action_fields[] = {
    field<&A::number>("action"),
    field<&A::at>("at"),
    field<&A::who>("who", {.kind = Kind::untrusted}),
    field<&A::what>("what"),
    field<&A::detail>("detail", {.kind = Kind::untrusted}),
};

}  // namespace

namespace description {

constexpr Description<ProcessStatus> process{
    process_fields,
    {.table =
         "process position lag_events lag_s waiting due overdue parked fired next_due_at problem",
     .sheet =
         "process position lag_events lag_s owner waiting due overdue oldest_due_s next_due_at "
         "unknown parked fired failed parked_events problem"}};
constexpr Description<TimerStatus> timer{
    timer_fields,
    {.table = "process key kind state due_at late_s recurrence attempts error",
     .sheet =
         "process key kind schema_version state due_at late_s recurrence attempts next_attempt_at "
         "error set_at correlation_id causation_id actor payload payload_base64"}};
constexpr Description<H> timer_hold{hold_fields, {.table = "reason since_at detail"}};
constexpr Description<A> timer_action{action_fields, {.table = "action at who what detail"}};

}  // namespace description
}  // namespace stela::tool
