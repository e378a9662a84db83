// doctor: what may be wrong with a database and the world around it.
#include "commands/doctor.hpp"
#include "asked_broker.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/examination.hpp"
#include "commands/outbox_text.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>

#include <sys/timex.h>

#include <algorithm>

namespace stela::tool {
namespace {

void look_at_clock(Examination& examination) {
  timex clock{};
  if (adjtimex(&clock) == TIME_ERROR) {
    examination.warn("clock", "the host's clock isn't synchronised", "run chrony or timesyncd");
  } else {
    examination.fine("clock", "the host's clock is synchronised");
  }
}

void look_at_last_event(Examination& examination, Store& store) try {
  const GlobalSequence last = store.last_sequence();
  for (const StoredEvent& event : store.read_at({{last}})) {
    const auto ahead = event.recorded_at - system_clock().now();
    if (ahead <= std::chrono::seconds{5}) continue;
    examination.bad("clock", "the last event was recorded " + in_words(ahead) + " in the future",
                    "correct the clock of this host, or of the host that appended the event");
  }
} catch (const CorruptEvent& e) {
  examination.bad("last event", e.what(), "'verify' says what else is damaged");
}

void look_at_participants(Examination& examination, const App& app, Store& store) {
  for (const auto& required : StoreOperations{store}.required_participants()) {
    const bool is_projector = required.name.substr(0, 10) == "projector:";
    const bool known = is_projector ? app.projections != nullptr
                                    : find_partitioner(app, required.detail) != nullptr;
    const std::string text = required.name + " (" + required.detail + ") takes part in appends";
    if (known) {
      examination.fine("participants", text);
    } else {
      examination.warn("participants", text + ", and this tool doesn't know it",
                       "append with the application, or with the tool built into it");
    }
  }
}

void look_at_workers(Examination& examination, const OutboxStatus& status) {
  for (const WorkerStatus& worker : status.workers) {
    if (!worker.is_alive) {
      examination.warn(
          "workers",
          worker.name + " is silent, with " + counted(worker.partitions, "partition") +
              "; alive: " + life_of(worker),
          worker.process == WorkerProcess::runs
              ? "it can't write to the database, or hangs: see its log and the free disk space; "
                "other workers take its partitions over when its leases expire"
              : "other workers take them over when its leases expire; restart it if it should run");
    }
  }
  const LivingWorkers living = living_workers(status);
  const bool waits = waiting_in(status) > 0;
  const std::string alive = std::to_string(living.all) + " alive";
  if (living.all > 0 && living.all == living.cut_off && waits) {
    examination.bad(
        "workers",
        "messages are pending, and none of " + alive + " reaches its broker: " + living.trouble,
        way_to_the_broker);
  } else if (living.cut_off > 0) {
    examination.warn("workers",
                     alive + ", " + std::to_string(living.cut_off) +
                         " cut off from their broker: " + living.trouble,
                     way_to_the_broker);
  } else if (living.misconfigured > 0) {
    examination.warn("workers", alive + "; broker " + living.trouble,
                     "configure the broker as it says; messages stay pending, none is lost");
  } else if (living.all > 0) {
    examination.fine("workers", alive);
  } else if (held_up_by(status) != nullptr) {
    examination.fine("workers",
                     "no live worker; pending messages are in stopped partitions, see below");
  } else if (waits) {
    examination.bad("workers", "messages are pending, and there is no live worker",
                    "run 'outbox work'");
  } else {
    examination.fine("workers", "no live worker, and nothing pending");
  }
}

void look_at_partitions(Examination& examination, const OutboxStatus& status,
                        std::chrono::milliseconds max_lag) {
  int owned = 0;
  int needed = 0;
  for (const PartitionStatus& partition : status.partitions) {
    const std::string label = partition.id.label();
    if (partition.stopped) {
      examination.bad(
          "partitions",
          label + " is stopped (" + word_of(partition.stopped) + "): " + partition.stopped_detail,
          way_out_of(partition, ""));
    } else if (partition.attempts > 0) {
      examination.warn("partitions", label + " is backing off: " + partition.last_error,
                       "continues by itself once the cause is fixed");
    } else if (partition.flight_age && *partition.flight_age > quiet_flight) {
      examination.warn("partitions", label + ": " + silence_in_words(*partition.flight_age),
                       "see the broker and the way there; what is in flight is sent again if need "
                       "be, and none is lost");
    }
    if (!partition.owner.empty() && partition.lease_left.count() <= 0) {
      examination.warn("leases",
                       label + " is held by " + partition.owner + ", whose lease has expired",
                       "a live worker takes it over");
    }
    owned += partition.owner.empty() ? 0 : 1;
    needed += partition.is_current || !partition.owner.empty() || partition.pending > 0 ? 1 : 0;
  }
  examination.fine("leases",
                   std::to_string(owned) + " of " + counted(needed, "partition") + " held");
  if (status.lag && *status.lag > max_lag) {
    examination.bad("lag", "the oldest message has been pending for " + in_words(*status.lag),
                    "see the partitions and the broker");
  } else {
    examination.fine("lag", lag_in_words(status));
  }
  if (status.parked > 0) {
    examination.warn("parked", counted(status.parked, "message"), way_to_unpark(""));
  }
}

/// What is wrong with a stream says what to change, unless nothing but another stream helps.
std::string way_to_a_stream(const std::optional<Answer>& answer) {
  switch (answer ? answer->stream_fault : StreamFault::none) {
    case StreamFault::missing:
      return "correct nats.stream, or create the stream with 'outbox work --ensure-stream'";
    case StreamFault::sealed:
      return "a sealed stream can't be changed: use another one (nats.stream)";
    case StreamFault::settings:
      return "change the stream as it says with the broker's own tool, or use another one "
             "(nats.stream)";
    case StreamFault::none:
      break;
  }
  return "check the broker's log, and this user's permissions there";
}

/// Whether each partition's stream is there, fit for it, and no shorter than it was.
void look_at_streams(Examination& examination, AskedBroker& broker, const OutboxStatus& status) {
  int sound = 0;
  for (const PartitionStatus& partition : status.partitions) {
    const std::string label = "partition " + partition.id.label();
    const auto answer = broker.read_back(partition.id, partition.broker_sequence);
    if (!answer || answer->kind != Answer::Kind::read_back) {
      const std::string why = answer ? answer->detail : "no answer";
      return examination.bad("broker streams", label + ": " + why, way_to_a_stream(answer));
    }
    if (answer->last_sequence >= partition.broker_sequence) {
      ++sound;
    } else if (!partition.stopped) {
      examination.bad(
          "broker streams",
          label + " ends at " + std::to_string(answer->last_sequence) +
              ", before what was published: " + std::to_string(partition.broker_sequence),
          "the stream was re-created or restored: once the partition is stopped, 'outbox "
          "partitions adopt " +
              partition.id.label() + "', then " + way_to_send_again(""));
    }
  }
  if (sound > 0) {
    examination.fine(
        "broker streams",
        "there for " + counted(sound, "partition") +
            ", none shorter than it was; 'outbox reconcile --against-broker --dry-run' "
            "compares what is in them");
  }
}

void look_at_broker(Examination& examination, Invocation& call, StoreSession& session,
                    const OutboxStatus& status) {
  const Settings& settings = call.settings();
  if (!settings.is_set("nats.url")) {
    return examination.fine("broker", "not checked; use --nats URL");
  }
  AskedBroker broker{settings, status.fence, session.partitioner()};
  const auto connected = broker.connect();
  if (!connected || connected->kind != Answer::Kind::connected) {
    const bool is_refused = connected && connected->kind == Answer::Kind::misconfigured;
    examination.bad("broker", connected ? connected->detail : "no answer",
                    is_refused
                        ? "it answers and refuses: correct the credentials (nats.user, "
                          "nats.password_file and the like), or the TLS settings"
                        : "start it, or correct nats.url; messages stay pending, none is lost");
  } else {
    examination.fine("broker", settings.text("nats.url") + " is connected");
    look_at_streams(examination, broker, status);
  }
}

void look_at_inbox(Examination& examination, Store& store) {
  nats::InboxOperations inbox{store};
  for (const nats::ConsumerStatus& one : inbox.status()) {
    const std::string who = "consumer '" + one.consumer + "' ";
    bool is_well = one.parked_messages + one.gaps == 0;
    for (const nats::ReaderStatus& reader : one.readers) {
      const std::string place =
          "message " + std::to_string(reader.failing) + " of '" + reader.broker_stream + "'";
      if (reader.is_paused) {
        examination.warn("inbox", who + "is paused",
                         "'inbox resume " + one.consumer + "' ends that");
      } else if (reader.is_overdue) {
        examination.warn("inbox", who + "isn't read: the lease of '" + reader.owner + "' is over",
                         "start a consumer; if one runs, that process hangs in a handler: end it");
      } else if (reader.failing > 0 && reader.attempts > 0) {
        examination.warn("inbox", who + "fails at " + place + ": " + reader.error,
                         "it is tried again, and parked in the end; later messages wait meanwhile");
      } else if (reader.failing > 0) {
        examination.warn("inbox", who + "waits for a newer process at " + place,
                         "start a process that knows the version of its event");
      } else if (reader.is_waiting) {
        examination.warn("inbox", who + "waits: " + reader.error,
                         "start its readers of those streams; 'inbox forget " + one.consumer +
                             " STREAM' if a stream isn't to be read any more");
      } else if (!reader.error.empty()) {
        examination.warn("inbox", who + "stands still: " + reader.error,
                         "'inbox list' says what is parked");
      } else {
        continue;
      }
      is_well = false;
    }
    if (one.parked_messages > 0) {
      examination.warn("inbox", who + "parked " + counted(one.parked_messages, "message"),
                       "'inbox list' says why; then 'inbox retry' or 'inbox discard'");
    }
    if (one.gaps > 0) {
      examination.warn("inbox", who + "missed messages of its streams: " + counted(one.gaps, "gap"),
                       "'inbox gaps' lists them; where they were published, 'outbox reconcile "
                       "--against-broker' sends again what the broker lost");
    }
    if (is_well) {
      examination.fine("inbox", who + "has handled what it received");
    }
  }
}

void look_at_projectors(Examination& examination, Store& store) {
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    const std::string who = one.name + " v" + std::to_string(one.version) + " (" +
                            std::string{to_string(one.state)} + ") ";
    const std::string retry = "'projections retry " + one.name + "'";
    const std::string at = std::to_string(one.failing.value());
    if (one.stopped && one.failing.value() == 0) {
      // No event is to blame, and none can be skipped.
      examination.bad("projections", who + "is stopped: " + one.error,
                      "do what it says, or rename the table that it names; then " + retry);
    } else if (one.stopped && one.attempts == 0) {
      examination.bad(
          "projections", who + "is stopped at event " + at + ": " + one.error,
          "run a release that knows the version, which continues by itself; 'projections "
          "skip " +
              one.name + " " + at + "' skips the event");
    } else if (one.stopped) {
      examination.bad("projections", who + "is stopped at event " + at + ": " + one.error,
                      "fix its handler, then " + retry + "; 'projections skip " + one.name + " " +
                          at + "' skips the event");
    }
    if (!one.stopped && one.failing.value() > 0 && one.attempts == 0 && one.owner.empty()) {
      examination.warn("projections", who + "waits at event " + at + ": " + one.error,
                       "run a release that knows the version");
    }
    if (one.parked > 0) {
      examination.warn("projections", who + "parked " + counted(one.parked, "event"),
                       "'projections list' says why");
    }
  }
}

std::string durability_in_words(StoreSession& session) {
  if (session.place().is_on_server()) return {};
  return ", durability " + std::string{to_string(sqlite::durability(session.store()))};
}

void look_at_timers(Examination& examination, Store& store) {
  TimerOperations timers{store};
  const std::vector<ProcessStatus> processes = timers.processes();
  for (const TimerHold& hold : timers.holds()) {
    const std::string advice =
        "'timers resume --dry-run' lists what would fire; 'timers resume' lets it";
    if (processes.empty()) {
      examination.warn("timers", "none would fire: " + hold.detail, advice);
    } else {
      examination.bad("timers", "none fires: " + hold.detail, advice);
    }
  }
  for (const ProcessStatus& one : processes) {
    const std::string who = "process '" + one.name + "' ";
    const std::string of_process = " --process " + one.name + "'";
    if (one.parked > 0) {
      examination.warn("timers", who + "parked " + counted(one.parked, "timer"),
                       "'timers list --parked" + of_process + " says why; then 'timers retry " +
                           one.name + "', or 'timers cancel'");
    }
    if (one.unknown > 0) {
      examination.warn("timers",
                       who + "has " + counted(one.unknown, "timer") + " that no runner knows",
                       "start a runner of the release that sets them");
    }
    if (one.overdue > 0) {
      examination.warn("timers",
                       who + "is late with " + counted(one.overdue, "timer") + ", the first by " +
                           in_words(one.oldest_due),
                       one.owner.empty() ? "no runner drives it: start one"
                                         : "'timers list --overdue" + of_process + " lists them");
    }
    if (one.parked + one.unknown + one.overdue == 0) {
      examination.fine("timers", who + "has " + counted(one.pending, "timer") + " to come");
    }
  }
}

int examine(Invocation& call) {
  Examination examination{call.out};
  if (!call.place().is_on_server()) look_at_sqlite(examination);
  StoreSession session{call, {.only_reads = true}};
  Store& store = session.store();
  // What is read must be durable: if no commit becomes that, the rest would only wait.
  if (session.place().is_on_server() && !look_at_server(examination, session.place(), store)) {
    return failed;
  }
  examination.fine("database", counted(store.last_sequence().value(), "event") + ", " +
                                   std::string{to_string(store.conventions().codec)} +
                                   durability_in_words(session));
  if (!session.place().is_on_server()) look_at_file(examination, store);
  look_at_clock(examination);
  look_at_last_event(examination, store);
  look_at_participants(examination, call.app, store);
  if (session.has_outbox()) {
    const OutboxStatus status = session.operations().status();
    look_at_workers(examination, status);
    look_at_partitions(examination, status, call.settings().duration("worker.max_lag"));
    look_at_broker(examination, call, session, status);
  }
  look_at_inbox(examination, store);
  look_at_projectors(examination, store);
  look_at_timers(examination, store);
  return examination.is_well() ? done : failed;
}

}  // namespace

Command doctor_command() {
  return {.path = "doctor",
          .summary = "Find problems and say how to fix them",
          .about = "Exit code 1 if something is bad.",
          .options = {db_option,
                      {"--nats", "URL", "also check this broker", "nats.url"},
                      jetstream_option,
                      prefix_option},
          .examples = {{"when something looks wrong",
                        "doctor --db shop.db --nats nats://127.0.0.1:4222 --stream SHOP"}},
          .run = examine};
}

}  // namespace stela::tool
