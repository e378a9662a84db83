// doctor: possible problems of a database and its surroundings.
#include "commands/doctor.hpp"
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

void look_at_links(Examination& examination, Invocation& call, Store& store) {
  const std::int64_t left = StoreOperations{store}.unindexed_events();
  const std::string events = counted(left, "event") + (left == 1 ? " isn't" : " aren't");
  if (left <= most_unindexed) {
    return examination.fine("links", left == 0 ? "all events are indexed by correlation and cause"
                                               : events +
                                                     " indexed by correlation and cause, "
                                                     "and read by each look-up");
  }
  examination.warn("links",
                   events + " indexed by correlation and cause; a look-up reads the newest " +
                       in_digits(most_unindexed) + " of them and misses the others",
                   "'" + call.app.name + " index build', and then by a timer, such as every hour");
}

void look_at_participants(Examination& examination, const App& app, Store& store) {
  for (const auto& required : StoreOperations{store}.required_participants()) {
    if (required.name == "suspended") {
      examination.warn("appends", "refused: " + required.detail, "'stela tenants resume'");
      continue;
    }
    const bool is_projector = required.name.substr(0, 10) == "projector:";
    const bool known = is_projector ? app.projections != nullptr
                                    : find_partitioner(app, required.detail) != nullptr;
    const std::string text = required.name + " (" + required.detail + ") takes part in appends";
    if (required.name == "tenant") {
      examination.fine("participants", "the store is that of tenant " + required.detail);
    } else if (required.name == "tenants") {
      examination.fine("participants", "the store is a registry of tenants");
    } else if (known) {
      examination.fine("participants", text);
    } else {
      examination.warn("participants", text + ", and this tool doesn't know it",
                       "append with the application, or with the tool built into it");
    }
  }
}

/// Reports facts about the outbox that aren't problems but often asked for.
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
    examination.fine("timers", "process '" + one.name + "' has " +
                                   (one.is_pending_lower_bound ? "more than " : "") +
                                   counted(one.pending, "timer") + " to come");
  }
}

/// Reports facts about the broker that aren't problems.
void tell_of_broker(Examination& examination, const Facts& facts,
                    const std::vector<Finding>& findings) {
  const std::optional<BrokerLook>& broker = facts.broker;
  const OutboxStatus& status = *facts.outbox;
  if (!broker) return examination.fine("broker", "not checked; use --nats URL");
  if (!broker->is_connected()) return;
  examination.fine("broker", broker->url + " is connected");
  const auto is_sound = [&](const StreamLook& stream) {
    return std::none_of(findings.begin(), findings.end(), [&](const Finding& each) {
      return each.subject == stream.partition.label() &&
             (each.code == Code::stream_unfit || each.code == Code::stream_shorter ||
              each.code == Code::partition_broker_lost);
    });
  };
  for (const StreamLook& stream : broker->streams) {
    const auto partition =
        std::find_if(status.partitions.begin(), status.partitions.end(),
                     [&](const PartitionStatus& each) { return each.id == stream.partition; });
    if (partition == status.partitions.end() || !stream.answer) continue;
    if (!is_to_be_made(*partition, *stream.answer)) continue;
    return examination.warn("broker streams", stream.answer->detail,
                            way_to_mend(facts.call, stream.answer->failure));
  }
  const auto sound = std::count_if(broker->streams.begin(), broker->streams.end(), is_sound);
  if (sound == 0) return;
  examination.fine("broker streams",
                   "there for " + counted(sound, "partition") +
                       ", none shorter than it was; 'outbox reconcile --against-broker --dry-run' "
                       "compares what is in them");
}

std::string durability_in_words(StoreSession& session) {
  if (session.place().is_on_server()) return {};
  return ", durability " + std::string{to_string(sqlite::durability(session.store()))};
}

/// True for findings that the examinations of files and servers report in their own words.
bool was_looked_at(Code code) {
  return code < Code::outbox_unattended && code != Code::database_locked &&
         code != Code::database_unanswered;
}

int examine(Invocation& call) {
  Examination examination{call.out};
  if (!call.place().is_on_server()) look_at_sqlite(examination);
  StoreSession session{call, {.only_reads = true}};
  Store& store = session.store();
  // Reads wait for durability, so if commits don't become durable the rest would only wait.
  if (session.place().is_on_server() && !look_at_server(examination, session.place(), store)) {
    return failed;
  }
  examination.fine("database", counted(store.last_sequence().value(), "event") + ", " +
                                   std::string{to_string(store.conventions().codec)} +
                                   durability_in_words(session));
  if (!session.place().is_on_server()) look_at_file(examination, store);
  look_at_clock(examination);
  look_at_last_event(examination, store);
  look_at_links(examination, call, store);
  look_at_participants(examination, call.app, store);
  look_at_privacy(examination, call, session);
  Facts facts = ask(session, call);
  facts.is_of_doctor = true;
  const Tolerance tolerance{
      .lag = {.critical = in_seconds(call.settings().duration("worker.max_lag"))}};
  const std::vector<Finding> findings = diagnose(facts, tolerance);
  for (const Finding& finding : findings) {
    if (!was_looked_at(finding.code)) examination.tell(finding);
  }
  if (facts.outbox) {
    tell_of_outbox(examination, *facts.outbox, findings);
    tell_of_broker(examination, facts, findings);
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
                      prefix_option,
                      keys_option,
                      master_option,
                      erasures_option},
          .examples = {{"when something looks wrong",
                        "doctor --db shop.db --nats nats://127.0.0.1:4222 --stream SHOP"}},
          .run = examine};
}

}  // namespace stela::tool
