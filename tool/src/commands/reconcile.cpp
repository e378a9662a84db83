// outbox reconcile.
#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "description/outbox.hpp"
#include "store_session.hpp"

#include <stela/nats/detail/stream_reader.hpp>

#include <algorithm>
#include <span>

namespace stela::tool {
namespace {

Mode reconcile_mode(const Arguments& arguments) {
  return arguments.has("--dry-run") ? Mode::dry_run : Mode::carry_out;
}

void print_compared(Invocation& call, const Compared& compared) {
  const bool dry_run = call.arguments.has("--dry-run");
  if (call.out.is_json()) {
    return print_json(call.out, description::compared, compared, {{"dry_run", dry_run}});
  }
  call.out.line(counted(compared.checked, "published event") + " compared with " +
                counted(compared.found, "message") + " at the broker.");
  if (compared.missing == 0) {
    call.out.line("None is missing.");
  } else {
    std::string text = in_digits(compared.missing) + " are missing at the broker and ";
    text += dry_run ? "would be published again: " : "will be published again: ";
    for (std::size_t i = 0; i < compared.examples.size() && i < 5; ++i) {
      text.append(i > 0 ? ", " : "").append(std::to_string(compared.examples[i].value()));
    }
    call.out.line(text.append(compared.missing > 5 ? ", …" : ""));
  }
  if (compared.dropped > 0) {
    call.out.line(in_digits(compared.dropped) + " are older than the broker's first message.");
  }
  if (compared.unknown > 0) {
    call.out.line(counted(compared.unknown, "message") +
                  " at the broker are of events that this database doesn't have: was it restored "
                  "from a backup?");
  }
  if (compared.foreign > 0) {
    call.out.line(counted(compared.foreign, "message") + " of other databases.");
  }
}

/// If no stream is found, a mistyped name is more likely than the loss of all streams.
void require_named_stream(Invocation& call, const nats::StreamReader& broker,
                          const Compared& planned) {
  const auto name = call.arguments.text("--stream");
  if (!name || planned.checked == 0 || broker.has_found_a_stream()) return;
  throw Exit{failed, "there is no JetStream stream '" + *name +
                         "' to compare with. If it was deleted, let a worker create it first"};
}

const PartitionStatus* stopped_for_loss(const OutboxStatus& status) {
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.stopped == StopReason::broker_lost) return &partition;
  }
  return nullptr;
}

/// Refuses what the library won't publish before announcing it or asking about it.
void require_none_stopped_for_loss(Invocation& call, const Compared& planned,
                                   const OutboxStatus& status) {
  const PartitionStatus* const stopped = stopped_for_loss(status);
  if (planned.missing == 0 || stopped == nullptr) return;
  const std::string name = stopped->id.label();
  const std::string text =
      "partition " + name + " is stopped because the broker lost messages, and resumes by itself " +
      "once it has them again; if they are gone for good, adopt it before they are published " +
      "again: 'outbox partitions adopt " + name + "'";
  if (reconcile_mode(call.arguments) == Mode::dry_run) return call.out.note(text);
  throw Misuse{text};
}

int compare(Invocation& call, StoreSession& session, ProgressBar& bar, GlobalSequence from) {
  nats::StreamReader broker{
      broker_options(call.settings(), session.operations().status().fence, session.partitioner())};
  const Compared planned = session.operations().compare(broker, from, Mode::dry_run);
  bar.clear();
  require_named_stream(call, broker, planned);
  require_none_stopped_for_loss(call, planned, session.operations().status());
  if (reconcile_mode(call.arguments) == Mode::dry_run) {
    print_compared(call, planned);
    return done;
  }
  if (planned.missing > 0 &&
      !call.confirm(
          in_digits(planned.missing) +
          " published events are missing at the broker and will be published again. Continue?")) {
    return failed;
  }
  const Compared compared = session.operations().compare(broker, from, Mode::carry_out);
  bar.clear();
  print_compared(call, compared);
  return done;
}

// --- --from-broker

/// A named stream that doesn't exist is a mistake, not an empty stream.
void require_named_stream(Invocation& call, const nats::StreamReader& broker) {
  const auto name = call.arguments.text("--stream");
  if (!name || broker.has_found_a_stream()) return;
  throw Exit{failed, "there is no JetStream stream '" + *name + "' to import from"};
}

std::string in_words(const ImportPlan& plan) {
  std::string text = "Only the broker has " + counted(std::ssize(plan.events), "event") +
                     ", of which " + in_digits(plan.fitting) +
                     (plan.fitting == 1 ? " fits." : " fit.");
  if (plan.foreign > 0) text += ' ' + counted(plan.foreign, "message") + " of other writers.";
  if (plan.is_cut) text += " It may have more: import these, and look again.";
  return text;
}

/// Prints the plan, ordered by stream.
void print_plan(Invocation& call, ImportPlan& plan) {
  std::stable_sort(plan.events.begin(), plan.events.end(),
                   [](const StrayEvent& a, const StrayEvent& b) { return a.stream < b.stream; });
  print_list(call.out, description::stray_event, plan.events);
}

int report_import(Invocation& call, const ImportPlan& plan, const AppliedImport& applied) {
  if (call.out.is_json()) {
    print_json(call.out, description::applied_import, applied,
               {{"planned", plan.fitting}, {"dry_run", false}});
  } else {
    call.out.line(counted(applied.imported, "event") + " of " + counted(applied.streams, "stream") +
                  " imported" +
                  (applied.changed > 0
                       ? "; " + in_digits(applied.changed) +
                             (applied.changed == 1 ? " doesn't fit any more and was left alone:"
                                                   : " don't fit any more and were left alone:")
                       : "."));
    constexpr std::size_t most_shown = 20;
    const std::size_t shown = std::min(applied.examples.size(), most_shown);
    if (shown > 0) {
      print_list(call.out, description::stray_event, std::span{applied.examples}.first(shown));
    }
  }
  if (applied.finished) return done;
  call.out.note("Interrupted: the same again continues.");
  return interrupted;
}

int import_from_broker(Invocation& call, StoreSession& session, ProgressBar& bar) {
  nats::StreamReader broker{
      broker_options(call.settings(), session.operations().status().fence, session.partitioner())};
  ImportPlan plan = session.operations().plan_import(broker);
  bar.clear();
  require_named_stream(call, broker);
  if (reconcile_mode(call.arguments) == Mode::dry_run) {
    print_plan(call, plan);
    call.out.is_json() ? call.out.note(in_words(plan)) : call.out.line(in_words(plan));
    return done;
  }
  if (plan.fitting == 0 && !call.out.is_json()) {
    call.out.line(in_words(plan));
    return done;
  }
  if (plan.fitting > 0 && !call.confirm(in_words(plan) + " Import what fits?")) return failed;
  const Signals signals{call};
  const AppliedImport applied = session.operations().apply(plan, broker, signals.token());
  bar.clear();
  return report_import(call, plan, applied);
}

/// Allows at most one of the two brokers, with its options only.
void check_brokers(const Invocation& call) {
  const Arguments& arguments = call.arguments;
  const bool imports = arguments.has("--from-broker");
  if (imports && (arguments.has("--against-broker") || arguments.has("--from"))) {
    throw Misuse{"--from-broker goes neither with --against-broker nor with --from"};
  }
  // The console passes its broker to all commands.
  if (call.out.is_kept()) return;
  for (const char* const option : {"--nats", "--stream", "--prefix"}) {
    if (imports || arguments.has("--against-broker") || !arguments.has(option)) continue;
    throw Misuse{std::string{option} + " is for --against-broker and --from-broker"};
  }
}

int reconcile(Invocation& call) {
  check_brokers(call);
  const GlobalSequence from{call.arguments.integer("--from", {1, largest}).value_or(1)};
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  ProgressBar bar{call.out, "events"};
  // The other forms ask before they change anything, and can be ended there.
  std::optional<Signals> signals;
  const bool is_plain =
      !call.arguments.has("--against-broker") && !call.arguments.has("--from-broker");
  if (is_plain) signals.emplace(call);
  session.operations().on_progress([&](const Progress& p) {
    bar.show(p.stage, p.done, p.total);
    if (!call.is_stopped() && !(signals && signals->stopped())) return;
    throw Exit{interrupted, "interrupted after " + in_digits(p.done) + " of " +
                                counted(p.total, "event") +
                                "; what was done until then stays, and the same again does the "
                                "rest"};
  });
  if (call.arguments.has("--against-broker")) return compare(call, session, bar, from);
  if (call.arguments.has("--from-broker")) return import_from_broker(call, session, bar);
  const Reconciled found = session.operations().reconcile(from, reconcile_mode(call.arguments));
  bar.clear();
  if (call.out.is_json()) {
    print_json(call.out, description::reconciled, found);
    return done;
  }
  std::string text = in_digits(found.checked) + " publishable events checked; ";
  if (found.missing == 0) {
    text += "each is pending, parked, discarded or published.";
  } else {
    text += in_digits(found.missing) + " were missing in the outbox and ";
    text += call.arguments.has("--dry-run") ? "would be enqueued." : "are now enqueued.";
  }
  call.out.line(text);
  if (found.miscounted > 0) {
    call.out.line(
        "The counts of " + counted(found.miscounted, "partition") +
        (call.arguments.has("--dry-run") ? " are wrong." : " were wrong and are corrected."));
  }
  return done;
}

}  // namespace

Command reconcile_command() {
  return {
      .path = "outbox reconcile",
      .summary = "Enqueue events that the outbox or the broker is missing",
      .about =
          "Also corrects the counts of partitions. --against-broker compares published events "
          "with the messages in JetStream and publishes missing ones again, after those "
          "already pending; use it after a broker lost acknowledged messages. Messages that "
          "the stream's limits removed don't count as missing. --from-broker imports events that "
          "only the broker has, after an older backup was restored: those that are the next "
          "version of their stream, with their ids, times and contexts. They count as published "
          "and aren't published again. Import before you adopt the stopped partitions, while "
          "nothing else appends.",
      .options = {db_option,
                  from_option,
                  {"--against-broker", "", "compare with the broker's stream"},
                  {"--from-broker", "", "import events that only the broker has"},
                  {"--nats", "URL", "the broker", "nats.url"},
                  jetstream_option,
                  prefix_option,
                  dry_run_option,
                  yes_option},
      .examples = {{"only report them", "outbox reconcile --dry-run"},
                   {"publish again what the broker lost",
                    "outbox reconcile --against-broker --stream SHOP --dry-run"},
                   {"list what a restored backup lacks",
                    "outbox reconcile --from-broker --stream SHOP --dry-run"}},
      .run = reconcile};
}

}  // namespace stela::tool
