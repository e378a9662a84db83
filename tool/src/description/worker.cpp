#include "description/worker.hpp"

#include "commands/outbox_text.hpp"

namespace stela::tool {
namespace {

template <auto get>
constexpr auto done(std::string_view name, const Metric& metric) {
  return field<[](const Condition& condition) { return std::invoke(get, condition.done); }>(
      name, {.metric = metric});
}

constexpr Field<Condition> condition_fields[] = {
    done<&Figures::owned>("owned_partitions", {.name = "stela_worker_owned_partitions",
                                               .help = "Partitions that this process has."}),
    done<&Figures::wanted>("wanted_partitions", {.name = "stela_worker_wanted_partitions",
                                                 .help = "Its share of the partitions."}),
    done<&Figures::active_workers>(
        "active_workers",
        {.name = "stela_worker_active_workers", .help = "Workers that are alive, everywhere."}),
    done<&Figures::heartbeat_age>("heartbeat_age_s", {.name = "stela_worker_heartbeat_age_seconds",
                                                      .help = "Since the last heartbeat."}),
    done<[](const Figures& seen) { return seen.broker && seen.broker->is_connected(); }>(
        "is_broker_up",
        {.name = "stela_worker_broker_up", .help = "1 while the broker is connected."}),
    field<[](const Condition& condition) { return why_not_ready(condition).empty(); }>(
        "is_ready",
        {.metric = {.name = "stela_worker_ready", .help = "1 while /readyz says yes."}}),
};

template <auto get>
constexpr auto own(std::string_view name, const Look& look = {}) {
  return field<[](const TickReport& report) { return std::invoke(get, report.tick); }>(name, look);
}

using T = RelayTick;
constexpr Field<TickReport> tick_fields[] = {
    own<&T::claimed>("claimed"),
    own<&T::published>("published"),
    own<&T::failed>("failed"),
    own<&T::duration>("duration_ms", {.kind = Kind::milliseconds}),
    own<&T::backoff>("backoff_ms", {.kind = Kind::milliseconds}),
    own<&T::renewed_heartbeat>("renewed_heartbeat"),
    own<&T::purged_stale>("purged_stale"),
    own<&T::active_workers>("active_workers"),
    own<&T::desired_count>("desired_count"),
    own<&T::owned_count>("owned_count"),
    own<&T::leased_count>("leased_count"),
    own<&T::released_count>("released_count"),
    field<&TickReport::at>("ts"),
    own<&T::retried>("retried"),
    own<&T::parked>("parked"),
    own<&T::fenced>("fenced"),
    own<&T::read_backs>("read_backs"),
    field<[](const TickReport& report) { return waiting_in(report.status); }>("pending"),
    field<[](const TickReport& report) { return report.status.lag; }>("oldest_pending_s",
                                                                      {.is_nullable = true}),
    field<[](const TickReport& report) { return to_string(report.tick.broker); }>(
        "broker", {.kind = Kind::untrusted}),
    field<&TickReport::state>("state"),
    field<&TickReport::worker>("worker", {.kind = Kind::untrusted}),
};

}  // namespace

namespace description {

constexpr Description<Condition> condition{condition_fields};
constexpr Description<TickReport> tick{tick_fields};

}  // namespace description
}  // namespace stela::tool
