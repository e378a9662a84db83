// outbox retry, discard, groups: what operators do about parked messages.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/affected.hpp"
#include "commands/event_selection.hpp"
#include "description/outbox.hpp"
#include "store_session.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace stela::tool {
namespace {

constexpr Option sequence_stream_option{"--stream", "ID", "all of this stream's"};
constexpr Option all_option{"--all", "", "all of them"};
constexpr Option group_option{"--group", "GROUP",
                              "of all, those that fail alike: see 'outbox groups'"};

const std::vector<Operand> selected_messages{
    {"SEQUENCE", "the sequence of a parked message", false, true}};

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

/// A type or an error selects among all parked messages.
ParkedSelection retried_of(const Arguments& arguments) {
  const std::string type = arguments.text("--type").value_or("");
  const std::string error = arguments.text("--error").value_or("");
  const std::string group = arguments.text("--group").value_or("");
  if (type.empty() && error.empty() && group.empty()) return parked_of(arguments);
  if (!arguments.operands().empty() || arguments.has("--stream")) {
    throw Misuse{
        "--type, --error and --group choose among all parked messages; leave SEQUENCE and "
        "--stream out"};
  }
  return {.all = true, .type = type, .error = error, .group = group};
}

/// Selects the heads of a group.
ParkedSelection discarded_of(const Arguments& arguments) {
  const auto group = arguments.text("--group");
  if (!group) return parked_of(arguments);
  if (!arguments.operands().empty() || arguments.has("--stream")) {
    throw Misuse{"--group chooses among all parked messages; leave SEQUENCE and --stream out"};
  }
  return {.all = true, .group = *group};
}

/// The limit of the lists on a terminal.
constexpr std::size_t most_runs_shown = 20;

void print_plan(Invocation& call, const RetryPlan& plan) {
  std::vector<ParkedRun> shown = plan.runs;
  shown.resize(std::min(shown.size(), most_runs_shown));
  print_list(call.out, description::parked_run, shown);
  if (plan.runs.size() > shown.size()) {
    call.out.line("and " + counted(std::ssize(plan.runs) - std::ssize(shown), "stream") + " more");
  }
}

Affected affected_by(const RetryPlan& plan) {
  return {.messages = plan.messages(), .streams = std::ssize(plan.runs)};
}

/// Runs a retry or a discard until it is done, or until a signal ends it after the current step.
template <class Plan>
auto apply_plan(Invocation& call, OutboxOperations& operations, const Plan& plan) {
  const Signals signals{call};
  ProgressBar bar{call.out, "messages"};
  operations.on_progress([&](const Progress& p) { bar.show(p.stage, p.done, p.total); });
  auto applied = operations.apply(plan, signals.token());
  operations.on_progress({});
  return applied;
}

int report_applied(Invocation& call, const AppliedPlan& applied) {
  if (call.out.is_json()) {
    print_json(call.out, description::applied_plan, applied, {{"dry_run", false}});
    return done;
  }
  call.out.line(counted(applied.messages, "message") + " of " + counted(applied.streams, "stream") +
                " will be retried" +
                (applied.joined > 0
                     ? ", of which " + counted(applied.joined, "message") + " joined since."
                     : "."));
  if (applied.gone > 0) {
    call.out.line(counted(applied.gone, "message") + " of these streams, discarded since, won't.");
  }
  std::size_t shown = 0;
  for (const ChangedRun& run : applied.changed) {
    if (++shown > most_runs_shown) break;
    call.out.line("Left alone: " + in_one_line(run.planned.stream) + ": " + in_one_line(run.why));
  }
  if (applied.changed.size() > most_runs_shown) {
    call.out.line("and " + in_digits(std::ssize(applied.changed) - std::int64_t{most_runs_shown}) +
                  " more");
  }
  return done;
}

/// How many of the heads are in each state now.
struct Outcome {
  std::int64_t published = 0;
  std::int64_t discarded = 0;
  std::int64_t parked = 0;
  std::int64_t waiting = 0;
  /// The error of a message that was parked again.
  std::string error = {};

  bool is_decided() const noexcept { return waiting == 0; }
};

Outcome outcome_of(OutboxOperations& operations, const RetryPlan& plan) {
  Outcome outcome;
  for (const ParkedRun& run : plan.runs) {
    const auto message = operations.show(run.head());
    if (!message) continue;
    const bool is_parked = message->state == MessageState::parked;
    outcome.published += message->state == MessageState::published ? 1 : 0;
    outcome.discarded += message->state == MessageState::discarded ? 1 : 0;
    outcome.parked += is_parked ? 1 : 0;
    if (is_parked) outcome.error = message->last_error;
    outcome.waiting += message->state == MessageState::pending || message->redelivery > 0 ? 1 : 0;
  }
  return outcome;
}

std::string in_words(const Outcome& outcome) {
  std::string text = "Of the first ones " + in_digits(outcome.published) + " are published";
  if (outcome.discarded > 0) text += ", " + in_digits(outcome.discarded) + " discarded";
  if (outcome.parked > 0) {
    text += ", " + in_digits(outcome.parked) + " parked again: " + in_one_line(outcome.error);
  }
  if (outcome.waiting > 0) text += ", " + in_digits(outcome.waiting) + " wait";
  return text + '.';
}

/// Waits until the outcome of each message is known, or the time is up.
int await_outcome(Invocation& call, OutboxOperations& operations, const RetryPlan& plan,
                  std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  const Signals signals{call};
  std::mutex mutex;
  std::condition_variable_any wake;
  std::chrono::milliseconds pause{50};
  Outcome outcome = outcome_of(operations, plan);
  while (!outcome.is_decided() && !signals.stopped() && std::chrono::steady_clock::now() < until) {
    std::unique_lock lock{mutex};
    wake.wait_for(lock, signals.token(), pause, [] { return false; });
    pause = std::min(pause * 2, std::chrono::milliseconds{2'000});
    outcome = outcome_of(operations, plan);
  }
  if (call.out.is_json()) {
    call.out.json(to_json({{"published", outcome.published},
                           {"discarded", outcome.discarded},
                           {"parked_again", outcome.parked},
                           {"waiting", outcome.waiting}}));
  } else {
    call.out.line(in_words(outcome));
  }
  return outcome.is_decided() && outcome.parked == 0 ? done : failed;
}

std::optional<std::chrono::milliseconds> wait_asked(const Arguments& arguments) {
  const auto text = arguments.text("--wait");
  if (!text) return {};
  const auto most = parse_duration(*text);
  if (!most) throw Misuse{not_a_duration("--wait", *text)};
  return most;
}

/// A group without parked messages is mistyped, or was already decided.
void require_group(const Arguments& arguments, bool is_empty) {
  const auto group = arguments.text("--group");
  if (group && is_empty) {
    throw Exit{not_found, "no parked message is of the group '" + in_one_line(*group) +
                              "'; 'outbox groups' lists them"};
  }
}

int retry_messages(Invocation& call) {
  const ParkedSelection selection = retried_of(call.arguments);
  const auto most_wait = wait_asked(call.arguments);
  const bool is_dry = call.arguments.has("--dry-run");
  StoreSession session{call, {.only_reads = is_dry}};
  const RetryPlan plan = session.operations().plan_retry(selection);
  require_group(call.arguments, plan.runs.empty());
  if (is_dry) {
    if (!call.out.is_json() && !plan.runs.empty()) print_plan(call, plan);
    return report_affected(call, affected_by(plan), retrying);
  }
  const Affected planned = affected_by(plan);
  if (!call.confirm_elsewhere("Retry " + counted(planned.messages, "message") + " of " +
                              counted(planned.streams, "stream") + "?")) {
    return failed;
  }
  const AppliedPlan applied = apply_plan(call, session.operations(), plan);
  int reported = report_applied(call, applied);
  const Affected came{.messages = applied.messages_done(), .finished = applied.finished};
  if (reported == done) reported = tell_if_interrupted(call, came, plan.messages());
  if (reported != done || !most_wait) return reported;
  return await_outcome(call, session.operations(), plan, *most_wait);
}

int list_groups(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  const auto groups = session.operations().groups();
  if (groups.empty() && !call.out.is_json()) call.out.note("Nothing is parked.");
  if (!groups.empty()) print_list(call.out, description::failure_group, groups);
  return done;
}

int discard_messages(Invocation& call) {
  const ParkedSelection selection = discarded_of(call.arguments);
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  OutboxOperations& operations = session.operations();
  const DiscardPlan plan = operations.plan_discard(selection);
  require_group(call.arguments, plan.messages.empty());
  return asked(call, discarding, "Discard", [&](Mode mode) {
    if (mode == Mode::dry_run) return plan.affected;
    return apply_plan(call, operations, plan);
  });
}

}  // namespace

Command retry_command() {
  return {.path = "outbox retry",
          .summary = "Retry parked messages, in order",
          .about =
              "Messages parked behind them in their stream are retried, too, also those that came "
              "meanwhile. A stream whose first parked message isn't any more what was found is "
              "left alone, and named.",
          .operands = selected_messages,
          .options = {db_option,
                      sequence_stream_option,
                      all_option,
                      {"--type", "NAME",
                       "of all, streams whose first parked message is an event of this type"},
                      {"--error", "TEXT",
                       "of all, streams whose first parked message has an error with this text"},
                      group_option,
                      {"--wait", "DURATION", "say what became of them, or what still waits then"},
                      dry_run_option},
          .examples = {{"one", "outbox retry 17"},
                       {"after raising the broker's max_payload",
                        "outbox retry --error 'maximum payload'"},
                       {"what would be sent", "outbox retry --all --dry-run"},
                       {"all that fail alike", "outbox retry --group f3a09c21be47 --wait 10s"}},
          .run = retry_messages};
}

Command groups_command() {
  return {
      .path = "outbox groups",
      .summary = "Show parked messages by what their failures have in common",
      .about =
          "The reason, the event's type and the first line of the error, without numbers, ids "
          "and what stands in quotation marks. A stream counts once, by its first parked message.",
      .options = {db_option},
      .examples = {{"what to retry together", "outbox groups"}},
      .run = list_groups};
}

Command discard_command() {
  return {.path = "outbox discard",
          .summary = "Discard parked messages",
          .about = "Messages parked after it in its stream are retried.",
          .operands = selected_messages,
          .options = {db_option, sequence_stream_option, all_option, group_option, dry_run_option,
                      yes_option},
          .examples = {{"one", "outbox discard 17 --yes"}},
          .run = discard_messages};
}

}  // namespace stela::tool
