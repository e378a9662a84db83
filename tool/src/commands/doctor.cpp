// doctor: what may be wrong with a database and the world around it.
#include "commands/doctor.hpp"
#include "asked_broker.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/examination.hpp"
#include "commands/outbox_text.hpp"
#include "diagnosis/facts.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>

#include <sys/timex.h>

#include <algorithm>
#include <vector>

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

/// What isn't wrong, and what a visitor asks nevertheless.
void tell_of_outbox(Examination& examination, const OutboxStatus& status,
                    const std::vector<Finding>& findings) {
  const LivingWorkers living = living_workers(status);
  if (living.all > 0) {
    examination.fine("workers", std::to_string(living.all) + " alive");
  } else if (held_up_by(status) != nullptr) {
    examination.fine("workers",
                     "no live worker; pending messages are in stopped partitions, see above");
  } else if (waiting_in(status) == 0) {
    examination.fine("workers", "no live worker, and nothing pending");
  }
  int owned = 0;
  int needed = 0;
  for (const PartitionStatus& partition : status.partitions) {
    owned += partition.owner.empty() ? 0 : 1;
    needed += partition.is_current || !partition.owner.empty() || partition.pending > 0 ? 1 : 0;
  }
  examination.fine("leases",
                   std::to_string(owned) + " of " + counted(needed, "partition") + " held");
  const bool is_late = std::any_of(findings.begin(), findings.end(), [](const Finding& each) {
    return each.code == Code::outbox_late;
  });
  if (!is_late) examination.fine("lag", lag_in_words(status));
}

void tell_of_followers(Examination& examination, const Facts& facts,
                       const std::vector<Finding>& findings) {
  for (const nats::ConsumerStatus& one : facts.consumers) {
    const bool is_well = std::none_of(findings.begin(), findings.end(), [&](const Finding& each) {
      return each.subject == one.consumer;
    });
    if (is_well) {
      examination.fine("inbox", "consumer '" + one.consumer + "' has handled what it received");
    }
  }
  for (const ProcessStatus& one : facts.processes) {
    examination.fine(
        "timers", "process '" + one.name + "' has " + counted(one.pending, "timer") + " to come");
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

/// Nothing but an operator removes messages of a stream that keeps what is old.
void warn_of_limits(Examination& examination, const std::string& label, const Answer& answer) {
  constexpr double nearly_full = 0.9;
  if (answer.first_sequence > 1 && !answer.drops_old) {
    examination.warn("broker streams",
                     label + ": its stream begins at message " +
                         std::to_string(answer.first_sequence) +
                         " and drops nothing by itself: somebody purged it, or deleted messages",
                     "'outbox reconcile --against-broker --dry-run' says what is missing; without "
                     "--dry-run it sends that again");
  }
  if (answer.fullness < nearly_full) return;
  examination.warn("broker streams",
                   label + ": its stream is " +
                       std::to_string(static_cast<int>(100 * answer.fullness)) + " % full",
                   answer.limit +
                       ": raise it before it is reached, then no message is published "
                       "until it is raised");
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
    warn_of_limits(examination, label, *answer);
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

std::string durability_in_words(StoreSession& session) {
  if (session.place().is_on_server()) return {};
  return ", durability " + std::string{to_string(sqlite::durability(session.store()))};
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
  const Facts facts = ask(session, call.app.name);
  const Tolerance tolerance{
      .lag = {.critical = in_seconds(call.settings().duration("worker.max_lag"))}};
  const std::vector<Finding> findings = diagnose(facts, tolerance);
  for (const Finding& finding : findings) {
    // Whether it can be written to was looked at above.
    if (finding.code != Code::database_down) examination.tell(finding);
  }
  if (facts.outbox) {
    tell_of_outbox(examination, *facts.outbox, findings);
    look_at_broker(examination, call, session, *facts.outbox);
  }
  tell_of_followers(examination, facts, findings);
  return examination.is_well() ? done : failed;
}

}  // namespace

Command doctor_command() {
  return {.path = "doctor",
          .summary = "Find problems and say how to fix them",
          .about = "Exit code 1 if something is critical.",
          .options = {db_option,
                      {"--nats", "URL", "also check this broker", "nats.url"},
                      jetstream_option,
                      prefix_option},
          .examples = {{"when something looks wrong",
                        "doctor --db shop.db --nats nats://127.0.0.1:4222 --stream SHOP"}},
          .run = examine};
}

}  // namespace stela::tool
