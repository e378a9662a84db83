// What Stela's parts report to a metric sink.
#pragma once

#include <array>
#include <string_view>

namespace stela::tool {

struct ReportedMetric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
};

inline constexpr std::array reported_metrics{
    ReportedMetric{"stela_store_commits_total", "counter", "Transactions that committed events."},
    ReportedMetric{"stela_store_writes_total", "counter",
                   "Appends and transactions of callers that were committed."},
    ReportedMetric{"stela_store_events_total", "counter", "Events that were committed."},
    ReportedMetric{"stela_store_failed_writes_total", "counter", "Writes that failed, by error."},
    ReportedMetric{"stela_store_commit_seconds", "histogram",
                   "A commit, with the wait for the write lock."},
    ReportedMetric{"stela_store_wal_pages", "gauge", "Pages of 4 KiB in the write-ahead log."},
    ReportedMetric{"stela_store_checkpoints_total", "counter", "Checkpoints, by result."},
    ReportedMetric{"stela_worker_ticks_total", "counter", "Ticks of this process."},
    ReportedMetric{"stela_worker_claimed_total", "counter", "Messages taken up."},
    ReportedMetric{"stela_worker_published_total", "counter",
                   "Messages published by this process."},
    ReportedMetric{"stela_worker_retried_total", "counter", "Tries that failed and are repeated."},
    ReportedMetric{"stela_worker_parked_total", "counter", "Messages parked."},
    ReportedMetric{"stela_worker_skipped_total", "counter",
                   "Messages given up by on_poison = skip."},
    ReportedMetric{"stela_worker_fenced_total", "counter",
                   "Changes refused for want of the lease."},
    ReportedMetric{"stela_worker_read_backs_total", "counter",
                   "Questions to the broker what stands there."},
    ReportedMetric{"stela_worker_tick_duration_seconds", "histogram", "How long a tick worked."},
    ReportedMetric{"stela_runner_events_total", "counter",
                   "Events read, once for all projectors that stood there."},
    ReportedMetric{"stela_runner_commits_total", "counter",
                   "Checkpoints of projectors that moved."},
    ReportedMetric{"stela_runner_failures_total", "counter", "Failures of handlers."},
    ReportedMetric{"stela_runner_halts_total", "counter", "Projectors halted by an event."},
    ReportedMetric{"stela_runner_parked_total", "counter", "Events that projectors put aside."},
    ReportedMetric{"stela_runner_takeovers_total", "counter", "New versions that took over."},
    ReportedMetric{"stela_runner_owned_projectors", "gauge",
                   "Projectors and reactions that this runner drives."},
    ReportedMetric{"stela_consumer_handled_total", "counter", "Messages handled."},
    ReportedMetric{"stela_consumer_failures_total", "counter", "Failures of handlers."},
    ReportedMetric{"stela_consumer_held_total", "counter",
                   "Messages held because an earlier one of their stream wasn't handled."},
    ReportedMetric{"stela_consumer_dead_letters_total", "counter", "Messages given up."},
    ReportedMetric{"stela_consumer_gaps_total", "counter",
                   "Messages handled though earlier ones of their stream are missing."},
    ReportedMetric{"stela_consumer_lost_total", "counter",
                   "Held messages that left the broker before they were handled."},
    ReportedMetric{"stela_consumer_held_streams", "gauge", "Streams that are held."},
    ReportedMetric{"stela_consumer_broker_up", "gauge", "1 while the broker gives messages."},
};

}  // namespace stela::tool
