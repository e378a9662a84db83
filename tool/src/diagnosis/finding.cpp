#include "diagnosis/finding.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace stela::tool {
namespace {

using enum Code;

constexpr std::array codes{
    CodeFacts{database_down, "database_down", Severity::critical,
              "The database doesn't answer, or its file or server takes no writes."},
    CodeFacts{database_standby, "database_standby", Severity::warning,
              "The database is a standby, which takes no writes. If the location names several "
              "servers, it is `database_down`: no primary among them answers."},
    CodeFacts{
        database_transaction, "database_transaction", Severity::warning,
        "A transaction has been open for ten minutes; rows of the outbox stay until it ends."},
    CodeFacts{database_locked, "database_locked", Severity::critical,
              "Somebody has locked a table of the store on PostgreSQL: who needs it waits."},
    CodeFacts{database_unanswered, "database_unanswered", Severity::warning,
              "A part of the database couldn't be asked; the rest was."},
    CodeFacts{standby_late, "standby_late", Severity::warning,
              "A standby has been behind for a minute."},
    CodeFacts{outbox_unattended, "outbox_unattended", Severity::critical,
              "Messages are pending, and no worker is alive."},
    CodeFacts{outbox_cut_off, "outbox_cut_off", Severity::critical,
              "Messages are pending, and no live worker reaches its broker."},
    CodeFacts{outbox_late, "outbox_late", Severity::warning,
              "The oldest message has been pending for a minute; critical after five minutes."},
    CodeFacts{outbox_parked, "outbox_parked", Severity::warning, "Messages are parked."},
    CodeFacts{worker_cut_off, "worker_cut_off", Severity::warning,
              "A worker doesn't reach its broker, and leaves its partitions to others."},
    CodeFacts{worker_misconfigured, "worker_misconfigured", Severity::warning,
              "A worker's broker answers, and isn't set up for all that is to be published."},
    CodeFacts{worker_silent, "worker_silent", Severity::warning,
              "A worker's process runs and doesn't renew its heartbeat."},
    CodeFacts{worker_ended, "worker_ended", Severity::warning,
              "A worker ended, or can't be seen, without handing its partitions over."},
    CodeFacts{partition_poison, "partition_poison", Severity::critical,
              "A partition is stopped at a message that can't be published."},
    CodeFacts{partition_foreign_writer, "partition_foreign_writer", Severity::critical,
              "A partition is stopped: another program publishes to its stream."},
    CodeFacts{partition_broker_lost, "partition_broker_lost", Severity::critical,
              "A partition is stopped: the broker has less than it acknowledged."},
    CodeFacts{partition_store_went_back, "partition_store_went_back", Severity::critical,
              "A partition is stopped: the broker has events that the store doesn't have."},
    CodeFacts{partition_unreadable, "partition_unreadable", Severity::critical,
              "A partition is stopped: the broker's messages contradict each other."},
    CodeFacts{partition_damaged, "partition_damaged", Severity::critical,
              "A partition is stopped: its row in the database can't be right."},
    CodeFacts{partition_missing, "partition_missing", Severity::critical,
              "Messages wait in a partition that doesn't exist."},
    CodeFacts{partition_unrecognized, "partition_unrecognized", Severity::critical,
              "A partition is stopped by a newer version of Stela."},
    CodeFacts{partition_backing_off, "partition_backing_off", Severity::warning,
              "A partition waits for its next attempt."},
    CodeFacts{
        partition_unanswered, "partition_unanswered", Severity::warning,
        "Messages are in flight, and the broker hasn't answered for 10 s; critical after five "
        "minutes."},
    CodeFacts{partition_lease_expired, "partition_lease_expired", Severity::warning,
              "A partition's worker doesn't renew its lease; nobody has taken it over."},
    CodeFacts{partition_uncompared, "partition_uncompared", Severity::warning,
              "A partition was adopted, and all of it isn't compared with its broker yet."},
    CodeFacts{broker_unreached, "broker_unreached", Severity::critical,
              "The broker of the settings doesn't answer; a warning if a live worker reaches it."},
    CodeFacts{stream_unfit, "stream_unfit", Severity::critical,
              "A partition's stream is missing, or can't take its messages."},
    CodeFacts{
        stream_shorter, "stream_shorter", Severity::critical,
        "A partition's stream ends before what was published, and no worker has noticed yet."},
    CodeFacts{stream_purged, "stream_purged", Severity::warning,
              "A stream that drops nothing by itself has lost its beginning."},
    CodeFacts{stream_nearly_full, "stream_nearly_full", Severity::warning,
              "A partition's stream has reached 90 % of a limit."},
    CodeFacts{projector_stopped, "projector_stopped", Severity::critical,
              "A projector, reaction or process is stopped, until somebody acts."},
    CodeFacts{projector_unknown_version, "projector_unknown_version", Severity::warning,
              "A projector waits for a release that knows an event's version."},
    CodeFacts{projector_failing, "projector_failing", Severity::warning,
              "A projector tries an event again."},
    CodeFacts{projector_unattended, "projector_unattended", Severity::critical,
              "A projector or reaction is behind, and no runner drives it."},
    CodeFacts{projector_late, "projector_late", Severity::warning,
              "A projector has been behind for a minute; critical after five minutes."},
    CodeFacts{projector_parked, "projector_parked", Severity::warning,
              "A projector has parked events."},
    CodeFacts{timers_held, "timers_held", Severity::critical,
              "No timer fires, until somebody acts."},
    CodeFacts{process_overdue, "process_overdue", Severity::warning,
              "Timers of a process have been overdue for a minute; critical after five minutes."},
    CodeFacts{process_parked, "process_parked", Severity::warning,
              "Timers of a process are parked."},
    CodeFacts{process_unknown_timers, "process_unknown_timers", Severity::warning,
              "No runner knows some timers of a process."},
    CodeFacts{consumer_overdue, "consumer_overdue", Severity::critical,
              "A consumer's stream isn't read: its reader has ended or hangs."},
    CodeFacts{consumer_unattended, "consumer_unattended", Severity::warning,
              "Nobody reads a consumer's streams: no process runs, or none reaches the broker."},
    CodeFacts{consumer_failing, "consumer_failing", Severity::warning,
              "A consumer tries a message again."},
    CodeFacts{consumer_unknown_version, "consumer_unknown_version", Severity::warning,
              "A consumer waits for a process that knows an event's version."},
    CodeFacts{consumer_waiting, "consumer_waiting", Severity::warning,
              "A consumer's stream waits for readers of other streams."},
    CodeFacts{consumer_standing, "consumer_standing", Severity::warning,
              "A consumer's stream stands still."},
    CodeFacts{consumer_paused, "consumer_paused", Severity::warning, "A consumer is paused."},
    CodeFacts{consumer_parked, "consumer_parked", Severity::warning,
              "A consumer has parked messages."},
    CodeFacts{consumer_gaps, "consumer_gaps", Severity::warning,
              "A consumer missed messages of its streams."},
    CodeFacts{message_parked, "message_parked", Severity::warning,
              "The message can't be published until somebody acts."},
    CodeFacts{message_parked_behind, "message_parked_behind", Severity::warning,
              "The message waits for a parked one of its stream."},
    CodeFacts{message_pending, "message_pending", Severity::fine,
              "The message is to be published."},
    CodeFacts{message_discarded, "message_discarded", Severity::fine, "The message was given up."},
    CodeFacts{message_published, "message_published", Severity::fine,
              "The broker has the message."},
    CodeFacts{event_local, "event_local", Severity::fine, "The event isn't one that is published."},
    CodeFacts{well, "well", Severity::fine, "Nothing is wrong with it."},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i].code != static_cast<Code>(i)) return false;
  }
  return codes.size() == static_cast<std::size_t>(well) + 1;
}
static_assert(is_in_order());

}  // namespace

std::span<const CodeFacts> all_codes() noexcept {
  return codes;
}

const CodeFacts& facts_of(Code code) noexcept {
  return codes[static_cast<std::size_t>(code)];
}

std::string_view word_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::fine:
      return "ok";
    case Severity::warning:
      return "warning";
    case Severity::critical:
      return "critical";
  }
  return {};
}

Severity worst_of(std::span<const Finding> findings) noexcept {
  Severity worst = Severity::fine;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

}  // namespace stela::tool
