// outbox list, show, retry, discard, republish, purge, workers.
#include "description/outbox.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "commands/status.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/framework/error.hpp>

#include <array>

namespace stela::tool {
namespace {

constexpr Option sequence_stream_option{"--stream", "ID", "all of this stream's"};
constexpr Option all_option{"--all", "", "all of them"};

Mode outbox_mode(const Arguments& arguments) {
  return arguments.has("--dry-run") ? Mode::dry_run : Mode::carry_out;
}

int workers(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, description::worker, session.operations().status().workers);
  return done;
}

MessageQuery messages_asked_for(const Arguments& arguments) {
  MessageQuery query{.stream = arguments.text("--stream").value_or(""),
                     .type = arguments.text("--type").value_or(""),
                     .error = arguments.text("--error").value_or("")};
  if (const auto state = arguments.text("--state")) {
    query.state = parse_message_state(*state);
    if (!query.state) {
      constexpr std::array<std::string_view, 6> states{"pending", "in_flight", "retrying",
                                                       "parked",  "discarded", "published"};
      throw Misuse{"there is no state '" + in_one_line(*state) + "'" +
                   did_you_mean(*state, states)};
    }
  }
  if (const auto partition = arguments.text("--partition")) {
    query.partition = to_partition(*partition);
  }
  query.after = GlobalSequence{arguments.integer("--after", {0, largest}).value_or(0)};
  query.limit = static_cast<int>(arguments.integer("--limit", {1, 1'000'000}).value_or(100));
  return query;
}

int list_messages(Invocation& call) {
  const MessageQuery query = messages_asked_for(call.arguments);
  StoreSession session{call, {.only_reads = true}};
  const auto messages = session.operations().list(query);
  print_list(call.out, description::message, messages);
  if (messages.size() == static_cast<std::size_t>(query.limit)) {
    call.out.note("More results: use --after " + std::to_string(messages.back().sequence.value()));
  }
  return done;
}

/// How many messages a retry of this one sends. 0: it can't be sent before what is parked before it
/// in its stream.
std::int64_t count_retried(OutboxOperations& operations, GlobalSequence sequence) try {
  return operations.retry({.sequences = {sequence}}, Mode::dry_run).messages;
} catch (const UsageError&) {
  return 0;
}

void print_sheet(Invocation& call, const OutboxMessage& message, std::int64_t retried) {
  sheet_of(description::message, message).print(call.out);
  if (message.state != MessageState::parked) return;
  const std::string tool = call.app.name + " outbox ";
  const std::string one = std::to_string(message.sequence.value());
  const std::string which = retried > 0 ? one : "--stream " + message.stream;
  const std::string_view others = retried == 0
                                      ? ", with the messages parked before it in its stream"
                                  : retried > 1 ? ", with the messages parked behind it"
                                                : "";
  call.out.line("→ '" + tool + "retry " + which + "' retries it" + std::string{others} + "; '" +
                tool + "discard " + one + "' discards it");
}

int show_message(Invocation& call) {
  const GlobalSequence sequence{
      to_integer(call.arguments.operands().front(), "a sequence", {1, largest})};
  StoreSession session{call, {.only_reads = true}};
  const auto message = session.operations().show(sequence);
  if (!message) {
    throw Exit{not_found, "event " + std::to_string(sequence.value()) +
                              " isn't one that the outbox publishes"};
  }
  if (call.out.is_json()) {
    print_json(call.out, description::message, *message);
  } else {
    print_sheet(call, *message, count_retried(session.operations(), sequence));
  }
  return done;
}

ParkedSelection parked_of(const Arguments& arguments) {
  ParkedSelection selection{.stream = arguments.text("--stream").value_or(""),
                            .all = arguments.has("--all")};
  for (const std::string& text : arguments.operands()) {
    selection.sequences.emplace_back(to_integer(text, "a sequence", {1, largest}));
  }
  const int ways =
      int{!selection.sequences.empty()} + int{!selection.stream.empty()} + int{selection.all};
  if (ways != 1) throw Misuse{"which messages? Pass SEQUENCE…, --stream ID or --all"};
  return selection;
}

/// A type or an error chooses among all.
ParkedSelection retried_of(const Arguments& arguments) {
  const std::string type = arguments.text("--type").value_or("");
  const std::string error = arguments.text("--error").value_or("");
  if (type.empty() && error.empty()) return parked_of(arguments);
  if (!arguments.operands().empty() || arguments.has("--stream")) {
    throw Misuse{
        "--type and --error choose among all parked messages; leave SEQUENCE and --stream "
        "out"};
  }
  return {.all = true, .type = type, .error = error};
}

/// What happens to messages: "6 messages of 3 streams " and one of them.
struct Deed {
  std::string_view planned;
  std::string_view done;
};
constexpr Deed retrying{"would be retried", "will be retried"};
constexpr Deed discarding{"would be discarded", "discarded"};
constexpr Deed republishing{"would be published again", "will be published again"};

/// Says what was done, or would be.
int report_affected(Invocation& call, const Affected& affected, const Deed& deed) {
  const bool dry = outbox_mode(call.arguments) == Mode::dry_run;
  if (call.out.is_json()) {
    print_json(call.out, description::affected, affected, {{"dry_run", dry}});
    return affected.next ? interrupted : done;
  }
  std::string text =
      counted(affected.messages, "message") + " of " + counted(affected.streams, "stream") + ' ';
  call.out.line(text.append(dry ? deed.planned : deed.done).append("."));
  if (affected.followers > 0) {
    text = counted(affected.followers, "message") + " parked after it in its stream ";
    call.out.line(text.append(dry ? retrying.planned : retrying.done).append("."));
  }
  if (!affected.next) return done;
  call.out.line("Interrupted; the same with --from " + std::to_string(affected.next->value()) +
                " continues.");
  return interrupted;
}

/// What a selection would change, asked about, then changed.
template <class Operate>
int asked(Invocation& call, const Deed& deed, std::string_view question, Operate operate) {
  const Affected planned = operate(Mode::dry_run);
  if (planned.next) return interrupted;
  if (outbox_mode(call.arguments) == Mode::dry_run) return report_affected(call, planned, deed);
  std::string text = std::string{question} + ' ' + counted(planned.messages, "message") + '?';
  if (planned.followers > 0) {
    text += ' ' + counted(planned.followers, "message") +
            " parked after it in its stream will be retried.";
  }
  if (!call.confirm(text)) return failed;
  return report_affected(call, operate(Mode::carry_out), deed);
}

int retry_messages(Invocation& call) {
  const ParkedSelection selection = retried_of(call.arguments);
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  return report_affected(call, session.operations().retry(selection, outbox_mode(call.arguments)),
                         retrying);
}

int discard_messages(Invocation& call) {
  const ParkedSelection selection = parked_of(call.arguments);
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  return asked(call, discarding, "Discard",
               [&](Mode mode) { return session.operations().discard(selection, mode); });
}

int republish(Invocation& call) {
  const Arguments& given = call.arguments;
  RepublishSelection selection{.stream = given.text("--stream").value_or("")};
  constexpr Range sequences{1, largest};
  if (const auto from = given.integer("--from", sequences)) selection.from = GlobalSequence{*from};
  if (const auto to = given.integer("--to", sequences)) selection.to = GlobalSequence{*to};
  if (const auto since = given.text("--since")) selection.since = to_time(*since, "--since");
  if (const auto until = given.text("--until")) selection.until = to_time(*until, "--until");
  if (const auto label = given.text("--partition")) selection.partition = to_partition(*label);
  const bool bounded = given.has("--from") || given.has("--to") || selection.since ||
                       selection.until || !selection.stream.empty();
  if (!bounded) throw Misuse{"which events? Pass --from, --to, --since, --until or --stream"};
  if (selection.from > selection.to) throw Misuse{"--from is after --to"};
  const Signals signals;
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  // From the first event on is everything that is there, and not what comes meanwhile.
  if (given.has("--from") && !given.has("--to")) selection.to = session.store().last_sequence();
  ProgressBar bar{call.out, "events"};
  session.operations().on_progress([&](const Progress& p) { bar.show(p.stage, p.done, p.total); });
  return asked(call, republishing, "Publish again", [&](Mode mode) {
    const Affected affected = session.operations().republish(selection, mode, signals.token());
    bar.clear();
    return affected;
  });
}

int purge_messages(Invocation& call) {
  const auto text = call.arguments.text("--older-than");
  const auto age = parse_duration(text.value_or(call.settings().text("outbox.retention")));
  if (!age) throw Misuse{not_a_duration("--older-than", *text)};
  const auto hours = std::chrono::duration_cast<std::chrono::hours>(*age);
  if (hours != *age || hours.count() < 1) {
    throw Misuse{"--older-than is a whole number of hours, such as 36h or 7d, not '" +
                 text.value_or(call.settings().text("outbox.retention")) + "'"};
  }
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  const Purged planned = session.operations().purge(hours, Mode::dry_run);
  Purged purged = planned;
  if (outbox_mode(call.arguments) == Mode::carry_out) {
    const std::string question =
        counted(planned.batches + planned.actions, "row") + " of the log older than " +
        in_words(std::chrono::duration_cast<std::chrono::microseconds>(hours)) +
        " will be removed. Continue?";
    if (!call.confirm(question)) return failed;
    purged = session.operations().purge(hours);
  }
  if (call.out.is_json()) {
    print_json(call.out, description::purged, purged,
               {{"dry_run", call.arguments.has("--dry-run")}});
  } else {
    call.out.line(std::string{call.arguments.has("--dry-run") ? "Would remove " : "Removed "} +
                  counted(purged.batches, "batch") + " and " + counted(purged.actions, "action") +
                  " from the log.");
  }
  return done;
}

const std::vector<Operand> selected_messages{
    {"SEQUENCE", "the sequence of a parked message", false, true}};

Command list_command() {
  return {.path = "outbox list",
          .summary = "List pending and parked messages, or those of one state",
          .options = {db_option,
                      {"--state", "NAME",
                       "pending, in_flight, retrying, parked, discarded or published", "", false,
                       "pending|in_flight|retrying|parked|discarded|published"},
                      {"--partition", "P", "of this partition", "", false, "@partitions"},
                      stream_option,
                      {"--type", "NAME", "only events of this type"},
                      {"--error", "TEXT",
                       "only messages whose last error contains this text, in any case"},
                      {"--after", "SEQUENCE", "only messages after this sequence"},
                      limit_option},
          .examples = {{"parked messages and their errors", "outbox list --state parked"}},
          .run = list_messages};
}

Command retry_command() {
  return {.path = "outbox retry",
          .summary = "Retry parked messages, in order",
          .about = "Messages parked behind them in their stream are retried, too.",
          .operands = selected_messages,
          .options = {db_option,
                      sequence_stream_option,
                      all_option,
                      {"--type", "NAME",
                       "of all, streams whose first parked message is an event of this type"},
                      {"--error", "TEXT",
                       "of all, streams whose first parked message has an error with this text"},
                      dry_run_option},
          .examples = {{"one", "outbox retry 17"},
                       {"after raising the broker's max_payload",
                        "outbox retry --error 'maximum payload'"},
                       {"what would be sent", "outbox retry --all --dry-run"}},
          .run = retry_messages};
}

}  // namespace

std::vector<Command> outbox_commands() {
  return {
      work_command(),
      enable_command(),
      status_command(),
      history_command(),
      top_command(),
      check_command(),
      list_command(),
      {.path = "outbox show",
       .summary = "Show one message, with its state and last error",
       .operands = {{"SEQUENCE", "its event's sequence"}},
       .options = {db_option},
       .examples = {{"by its sequence", "outbox show 17"}},
       .run = show_message},
      retry_command(),
      {.path = "outbox discard",
       .summary = "Discard parked messages",
       .about = "Messages parked after it in its stream are retried.",
       .operands = selected_messages,
       .options = {db_option, sequence_stream_option, all_option, dry_run_option, yes_option},
       .examples = {{"one", "outbox discard 17 --yes"}},
       .run = discard_messages},
      {.path = "outbox republish",
       .summary = "Publish events again, as new messages",
       .options = {db_option,
                   from_option,
                   to_option,
                   since_option,
                   until_option,
                   stream_option,
                   {"--partition", "PARTITION", "only events that this partition published"},
                   dry_run_option,
                   yes_option},
       .examples = {{"count what the broker lost",
                     "outbox republish --from 501 --to 508 --partition all --dry-run"},
                    {"publish it again", "outbox republish --from 501 --to 508 --partition all"}},
       .run = republish},
      reconcile_command(),
      {.path = "outbox purge",
       .summary = "Delete old entries of the batch and action log",
       .options = {db_option,
                   {"--older-than", "TIME", "a time such as 7d (default: outbox.retention)"},
                   dry_run_option,
                   yes_option},
       .examples = {{"purge records older than a week", "outbox purge --older-than 7d --yes"}},
       .run = purge_messages},
      {.path = "outbox workers",
       .summary = "List workers and whether they are alive",
       .options = {db_option},
       .examples = {{"list the workers", "outbox workers"}},
       .run = workers},
  };
}

}  // namespace stela::tool
