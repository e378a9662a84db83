#include "commands/reconcile.hpp"

#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "session.hpp"

#include <stela/framework/codec/json_writer.hpp>
#include <stela/nats/stream_reader.hpp>

#include <span>

namespace stela::tool {
namespace {

Mode mode_of(const Arguments& arguments) {
  return arguments.has("--dry-run") ? Mode::dry_run : Mode::carry_out;
}

std::string& append_list(std::string& out, std::span<const GlobalSequence> sequences) {
  out += '[';
  for (const GlobalSequence sequence : sequences) {
    if (out.back() != '[') out += ',';
    json::append_integer(out, sequence.value());
  }
  return out += ']';
}

void print_compared(Invocation& call, const Compared& compared) {
  const bool dry_run = call.arguments.has("--dry-run");
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter object{text};
    object.add("checked", compared.checked)
        .add("found", compared.found)
        .add("missing", compared.missing)
        .add("dropped", compared.dropped)
        .add("unknown", compared.unknown)
        .add("foreign", compared.foreign)
        .add("dry_run", dry_run);
    append_list(object.key("examples"), compared.examples);
    object.close();
    return call.out.json(text);
  }
  call.out.line(counted(compared.checked, "published event") + " compared with " +
                counted(compared.found, "message") + " at the broker.");
  if (compared.missing == 0) {
    call.out.line("None is missing there.");
  } else {
    std::string text = in_digits(compared.missing) + " are missing there, and ";
    text += dry_run ? "would be sent again: " : "are to be sent again: ";
    for (std::size_t i = 0; i < compared.examples.size() && i < 5; ++i) {
      text.append(i > 0 ? ", " : "").append(std::to_string(compared.examples[i].value()));
    }
    call.out.line(text.append(compared.missing > 5 ? ", …" : ""));
  }
  if (compared.dropped > 0) {
    call.out.line(in_digits(compared.dropped) + " are older than what the broker keeps.");
  }
  if (compared.unknown > 0) {
    call.out.line(
        counted(compared.unknown, "message") +
        " at the broker of events that this database doesn't have: was it restored from a "
        "backup?");
  }
  if (compared.foreign > 0) {
    call.out.line(counted(compared.foreign, "message") + " of others.");
  }
}

/// A name that somebody typed is wrong sooner than all of its streams are gone.
void require_named_stream(Invocation& call, const nats::StreamReader& broker,
                          const Compared& planned) {
  const auto name = call.arguments.text("--stream");
  if (!name || planned.checked == 0 || broker.has_found_a_stream()) return;
  throw Exit{failed, "there is no JetStream stream '" + *name +
                         "' to compare with. If it was deleted, let a worker make it first"};
}

int compare(Invocation& call, Session& session, ProgressBar& bar, GlobalSequence from) {
  const Outbox& outbox = session.outbox();
  nats::StreamReader broker{broker_options(call.settings(), outbox.fence(), outbox.partitioner())};
  const Compared planned = session.operations().compare(broker, from, Mode::dry_run);
  bar.clear();
  require_named_stream(call, broker, planned);
  if (mode_of(call.arguments) == Mode::dry_run) {
    print_compared(call, planned);
    return done;
  }
  // What was lost is settled also when nothing is missing.
  if (planned.missing > 0 &&
      !call.confirm(in_digits(planned.missing) +
                    " published events aren't at the broker, and will be sent again. Go on?")) {
    return failed;
  }
  const Compared compared = session.operations().compare(broker, from, Mode::carry_out);
  bar.clear();
  print_compared(call, compared);
  return done;
}

void print_losses(Invocation& call, const OutboxStatus& status) {
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter object{text};
    object.add("losses", status.losses)
        .add("lost", status.lost)
        .add("dry_run", call.arguments.has("--dry-run"))
        .close();
    return call.out.json(text);
  }
  if (status.losses == 0) return call.out.line("No loss at the broker is unsettled.");
  call.out.line(loss_in_words(status) + (call.arguments.has("--dry-run")
                                             ? "; that would be accepted."
                                             : "; that is accepted, and nothing is sent."));
}

int accept_loss(Invocation& call) {
  if (call.arguments.has("--against-broker") || call.arguments.has("--from")) {
    throw Misuse{"--accept-loss sends nothing, so --against-broker and --from aren't for it"};
  }
  Session session{call};
  const OutboxStatus status = session.operations().status();
  const Mode mode = mode_of(call.arguments);
  if (mode == Mode::carry_out && status.losses > 0 &&
      !call.confirm(loss_in_words(status) + ", and won't be sent again. Accept that?")) {
    return failed;
  }
  session.operations().accept_losses(mode);
  print_losses(call, status);
  return done;
}

int reconcile(Invocation& call) {
  if (call.arguments.has("--accept-loss")) return accept_loss(call);
  const GlobalSequence from{call.arguments.integer("--from", {1, largest}).value_or(1)};
  Session session{call};
  ProgressBar bar{call.out, "events"};
  session.operations().on_progress(
      [&](const sqlite::Progress& p) { bar.show(p.stage, p.done, p.total); });
  if (call.arguments.has("--against-broker")) return compare(call, session, bar, from);
  const Reconciled found = session.operations().reconcile(from, mode_of(call.arguments));
  bar.clear();
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter object{text};
    object.add("checked", found.checked).add("missing", found.missing);
    append_list(object.key("examples"), found.examples);
    object.add("miscounted", found.miscounted).close();
    call.out.json(text);
    return done;
  }
  std::string text = in_digits(found.checked) + " publishable events looked at; ";
  if (found.missing == 0) {
    text += "each is waiting, parked, discarded or published.";
  } else {
    text += in_digits(found.missing) + " were in no state, and ";
    text += call.arguments.has("--dry-run") ? "would be enqueued." : "are enqueued now.";
  }
  call.out.line(text);
  if (found.miscounted > 0) {
    call.out.line(
        "The counts of " + counted(found.miscounted, "partition") +
        (call.arguments.has("--dry-run") ? " are wrong." : " were wrong and are mended."));
  }
  return done;
}

}  // namespace

Command reconcile_command() {
  return {.path = "outbox reconcile",
          .summary = "enqueues publishable events that are in no state, or aren't at the broker",
          .about =
              "It also counts anew what partitions have, where their counts are wrong. "
              "With --against-broker it compares what counts as published with what JetStream "
              "holds, and sends again what is missing there, behind what waits: after a broker "
              "lost what it had acknowledged. What the stream's limits dropped isn't missed. "
              "--accept-loss settles instead what adopted partitions have lost: it stays missing "
              "there, and that is recorded.",
          .options = {db_option,
                      from_option,
                      {"--against-broker", "", "compare with what the broker holds"},
                      {"--accept-loss", "", "let what the broker lost be, and send nothing"},
                      {"--nats", "URL", "the broker", "nats.url"},
                      {"--stream", "NAME", "the JetStream stream", "nats.stream"},
                      {"--prefix", "P", "the first part of subjects", "nats.prefix"},
                      dry_run_option,
                      yes_option},
          .examples = {{"whether there are any", "outbox reconcile --dry-run"},
                       {"what the broker lost",
                        "outbox reconcile --against-broker --stream SHOP --dry-run"}},
          .run = reconcile};
}

}  // namespace stela::tool
