#include "description/worker.hpp"

#include "commands/outbox_text.hpp"

namespace stela::tool {
namespace {

template <auto get>
constexpr auto done_field(std::string_view name, const Metric& metric) {
  return field<[](const Condition& condition) { return std::invoke(get, condition.done); }>(
      name, {.metric = metric});
}

constexpr Field<Condition> condition_fields[] = {
    done_field<&Figures::owned>("owned_partitions", {.name = "stela_worker_owned_partitions",
                                                     .help = "Partitions that this process has."}),
    done_field<&Figures::wanted>("wanted_partitions", {.name = "stela_worker_wanted_partitions",
                                                       .help = "Its share of the partitions."}),
    done_field<&Figures::active_workers>(
        "active_workers",
        {.name = "stela_worker_active_workers", .help = "Workers that are alive, everywhere."}),
    done_field<&Figures::heartbeat_age>(
        "heartbeat_age_s",
        {.name = "stela_worker_heartbeat_age_seconds", .help = "Since the last heartbeat."}),
    done_field<[](const Figures& seen) { return seen.broker && seen.broker->is_connected(); }>(
        "is_broker_up",
        {.name = "stela_worker_broker_up", .help = "1 while the broker is connected."}),
    field<[](const Condition& condition) { return why_not_ready(condition).empty(); }>(
        "is_ready",
        {.metric = {.name = "stela_worker_ready", .help = "1 while /readyz says yes."}}),
};

template <auto get>
constexpr auto worker_field(std::string_view name, const Look& look = {}) {
  return field<[](const TickReport& report) { return std::invoke(get, report.tick); }>(name, look);
}

constexpr Field<TickReport> relay_tick_fields[] = {
    worker_field<&RelayTick::claimed>("claimed"),
    worker_field<&RelayTick::published>("published"),
    worker_field<&RelayTick::failed>("failed"),
    worker_field<&RelayTick::duration>("duration_s"),
    worker_field<&RelayTick::backoff>("backoff_s"),
    worker_field<&RelayTick::renewed_heartbeat>("renewed_heartbeat"),
    worker_field<&RelayTick::purged_stale>("purged_stale"),
    worker_field<&RelayTick::active_workers>("active_workers"),
    worker_field<&RelayTick::desired_count>("desired_count"),
    worker_field<&RelayTick::owned_count>("owned_count"),
    worker_field<&RelayTick::leased_count>("leased_count"),
    worker_field<&RelayTick::released_count>("released_count"),
    field<&TickReport::at>("at"),
    worker_field<&RelayTick::retried>("retried"),
    worker_field<&RelayTick::parked>("parked"),
    worker_field<&RelayTick::fenced>("fenced"),
    worker_field<&RelayTick::read_backs>("read_backs"),
    field<[](const TickReport& report) { return waiting_in(report.status); }>("pending"),
    field<[](const TickReport& report) { return report.status.is_pending_lower_bound; }>(
        "pending_is_lower_bound"),
    field<[](const TickReport& report) { return report.status.lag; }>("oldest_pending_s"),
    field<[](const TickReport& report) { return report.tick.broker.state; }>("broker"),
    field<[](const TickReport& report) { return report.tick.broker.detail; }>(
        "broker_error", {.kind = Kind::untrusted}),
    field<&TickReport::store_problem>("database_error", {.kind = Kind::untrusted}),
    field<&TickReport::state>("state"),
    field<&TickReport::worker>("worker", {.kind = Kind::untrusted}),
};

}  // namespace

namespace description {

constexpr Description<Condition> condition{condition_fields};
constexpr Description<TickReport> tick{relay_tick_fields};

}  // namespace description
}  // namespace stela::tool
