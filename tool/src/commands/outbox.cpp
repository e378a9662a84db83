// outbox list, show, republish, purge, workers.
#include "description/outbox.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/affected.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "commands/status.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

namespace stela::tool {
namespace {

int workers(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, description::worker, session.operations().status().workers);
  return done;
}

MessageQuery messages_asked_for(const Arguments& arguments, const Page& page) {
  MessageQuery query{.stream = arguments.text("--stream").value_or(""),
                     .type = arguments.text("--type").value_or(""),
                     .error = arguments.text("--error").value_or(""),
                     .direction = page.direction()};
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
  // Some messages may be outside of the times.
  const bool has_times = arguments.has("--since") || arguments.has("--until");
  if (page.is_bounded()) query.most_looked = has_times ? 2 * most_looked : most_looked;
  return query;
}

/// Narrows the query to the times of --since and --until.
void seek(const Arguments& arguments, Store& store, MessageQuery& query) {
  EventSelection times{arguments};
  times.seek(store);
  query.since = times.query.since;
  query.until = times.query.until;
  query.from = times.query.from;
  query.to = times.query.to;
}

/// Lists messages that fail alike, each by the first parked message of its stream.
int list_group(Invocation& call, const std::string& group) {
  for (const auto option : {"--state", "--partition", "--stream", "--type", "--error", "--since"}) {
    if (!call.arguments.has(option)) continue;
    throw Misuse{"--group chooses by itself; leave " + std::string{option} + " out"};
  }
  Page page{call.arguments};
  StoreSession session{call, {.only_reads = true}};
  std::vector<ParkedRun> runs = session.operations().plan_retry({.all = true, .group = group}).runs;
  if (runs.empty()) {
    throw Exit{not_found, "no parked message is of the group '" + in_one_line(group) +
                              "'; 'outbox groups' lists them"};
  }
  std::ranges::sort(runs, {}, &ParkedRun::head);
  if (page.is_backward()) std::ranges::reverse(runs);
  const GlobalSequence after{call.arguments.integer("--after", {0, largest}).value_or(0)};
  Listing listing{call.out, description::message};
  for (const ParkedRun& run : runs) {
    const bool is_past =
        after == GlobalSequence{} || (page.is_backward() ? run.head() < after : run.head() > after);
    if (!is_past) continue;
    if (!page.take(run.head().value())) break;
    if (const auto message = session.operations().show(run.head())) listing.add(*message);
  }
  listing.print();
  page.tell(call.out, "messages", 0);
  return done;
}

int list_messages(Invocation& call) {
  if (const auto group = call.arguments.text("--group")) return list_group(call, *group);
  Page page{call.arguments};
  MessageQuery query = messages_asked_for(call.arguments, page);
  StoreSession session{call, {.only_reads = true}};
  seek(call.arguments, session.store(), query);
  Listing listing{call.out, description::message};
  std::int64_t looked = 0;
  for (bool goes_on = true; goes_on;) {
    query.limit = static_cast<int>(std::min(page.rows_read(), rows_at_once));
    const MessagePage found = session.operations().page(query);
    for (const OutboxMessage& message : found.messages) {
      if (page.take(message.sequence.value())) listing.add(message);
    }
    looked += found.looked;
    const bool is_full = found.messages.size() == static_cast<std::size_t>(query.limit);
    if (found.next && !is_full) page.stop(found.next->value(), looked);
    goes_on = found.next && page.is_complete();
    if (goes_on) query.after = *found.next;
  }
  listing.print();
  page.tell(call.out, "messages", 0);
  return done;
}

/// How many messages a retry of this one sends. 0 if earlier parked messages of its stream must be
/// sent first.
std::int64_t count_retried(OutboxOperations& operations, GlobalSequence sequence) try {
  return operations.retry({.sequences = {sequence}}, Mode::dry_run).messages;
} catch (const UsageError&) {
  return 0;
}

void print_sheet(Invocation& call, const OutboxMessage& message, std::int64_t retried) {
  sheet_of(description::message, message).print(call.out);
  const std::string one = std::to_string(message.sequence.value());
  if (message.state == MessageState::pending || message.state == MessageState::retrying) {
    call.out.line("→ '" + call.app.name + " why " + one + "' says what it waits for");
  }
  if (message.state != MessageState::parked) return;
  const std::string tool = call.app.name + " outbox ";
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
  const Signals signals{call};
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  // Fixes the end, because events that are appended meanwhile don't belong to it.
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

Command list_command() {
  return {
      .path = "outbox list",
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
                  {"--group", "GROUP",
                   "the first parked message of each stream that fails alike: see 'outbox groups'"},
                  since_option,
                  until_option,
                  newest_first_option,
                  limit_option,
                  after_event_option,
                  look_further_option},
      .examples = {{"parked messages and their errors", "outbox list --state parked"},
                   {"the last ones", "outbox list --newest-first --limit 10"}},
      .run = list_messages};
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
      groups_command(),
      {.path = "outbox show",
       .summary = "Show one message, with its state and last error",
       .operands = {{"SEQUENCE", "its event's sequence"}},
       .options = {db_option},
       .examples = {{"by its sequence", "outbox show 17"}},
       .run = show_message},
      retry_command(),
      discard_command(),
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
