// The metrics that Stela's parts report to a sink.
#pragma once

#include "description/metric.hpp"

#include <array>

namespace stela::tool {

using ReportedMetric = Metric;

inline constexpr std::array reported_metrics{
    Metric{"stela_store_commits_total", "counter", "Transactions that committed events."},
    Metric{"stela_store_writes_total", "counter",
           "Appends and transactions of callers that were committed."},
    Metric{"stela_store_events_total", "counter", "Events that were committed."},
    Metric{"stela_store_failed_writes_total", "counter", "Writes that failed, by error."},
    Metric{"stela_store_commit_seconds", "histogram",
           "A commit, with the wait for the write lock."},
    Metric{"stela_store_wal_pages", "gauge", "Pages of 4 KiB in the write-ahead log."},
    Metric{"stela_store_checkpoints_total", "counter", "Checkpoints, by result."},
    Metric{"stela_worker_ticks_total", "counter", "Ticks of this process."},
    Metric{"stela_worker_claimed_total", "counter", "Messages claimed by this process."},
    Metric{"stela_worker_published_total", "counter", "Messages published by this process."},
    Metric{"stela_worker_retried_total", "counter", "Failed attempts that are retried."},
    Metric{"stela_worker_parked_total", "counter", "Messages parked."},
    Metric{"stela_worker_skipped_total", "counter", "Messages given up by on_poison = skip."},
    Metric{"stela_worker_fenced_total", "counter", "Changes refused because the lease was lost."},
    Metric{"stela_worker_read_backs_total", "counter", "Read-backs of messages from the broker."},
    Metric{"stela_worker_tick_duration_seconds", "histogram", "How long a tick worked."},
    Metric{"stela_runner_events_total", "counter",
           "Events read, once for all projectors at the same position."},
    Metric{"stela_runner_commits_total", "counter", "Checkpoints of projectors that moved."},
    Metric{"stela_runner_failures_total", "counter", "Failures of handlers."},
    Metric{"stela_runner_left_to_newer_total", "counter",
           "Projectors left to runners that know the version of an event."},
    Metric{"stela_runner_stops_total", "counter", "Projectors stopped by an event."},
    Metric{"stela_runner_parked_total", "counter", "Events that projectors put aside."},
    Metric{"stela_runner_takeovers_total", "counter", "New versions that took over."},
    Metric{"stela_runner_timers_fired_total", "counter", "Timers of processes that fired."},
    Metric{"stela_runner_timer_failures_total", "counter", "Failures of timers."},
    Metric{"stela_runner_timers_parked_total", "counter", "Timers parked."},
    Metric{"stela_runner_owned_projectors", "gauge",
           "Projectors and reactions that this runner drives."},
    Metric{"stela_consumer_handled_total", "counter", "Messages handled."},
    Metric{"stela_consumer_failures_total", "counter", "Failures of handlers."},
    Metric{"stela_consumer_parked_total", "counter", "Messages parked."},
    Metric{"stela_consumer_gaps_total", "counter",
           "Messages handled though earlier ones of their stream are missing."},
    Metric{"stela_consumer_parked_bytes", "gauge", "Bytes of the parked messages."},
    Metric{
        "stela_handler_failed_statements_total", "counter",
        "SQL statements that failed in handlers that continued, by projector, reaction, process or "
        "consumer."},
    Metric{"stela_consumer_broker_up", "gauge", "1 while the broker gives messages."},
};

}  // namespace stela::tool
