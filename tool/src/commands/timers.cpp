// processes list, show; timers list, show, move, cancel, fire, retry, hold, resume, log.
#include "description/timers.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/timers_check.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/projections/timers.hpp>

#include <algorithm>
#include <iterator>

namespace stela::tool {
namespace {

void tell_holds(Invocation& call, TimerOperations& timers) {
  if (call.out.is_json()) return;
  for (const TimerHold& hold : timers.holds()) {
    call.out.note("No timer fires: " + in_one_line(hold.detail) + ". 'timers resume' ends that.");
  }
}

int list_processes(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  TimerOperations timers{session.store()};
  const auto processes = timers.processes();
  if (processes.empty() && !call.out.is_json()) call.out.note("This database has no processes.");
  if (!processes.empty()) print_list(call.out, description::process, processes);
  tell_holds(call, timers);
  return done;
}

int show_process(Invocation& call) {
  const std::string& name = call.arguments.operands().front();
  StoreSession session{call, {.only_reads = true}};
  TimerOperations timers{session.store()};
  for (const ProcessStatus& process : timers.processes()) {
    if (process.name != name) continue;
    if (call.out.is_json()) {
      print_json(call.out, description::process, process);
    } else {
      sheet_of(description::process, process).print(call.out);
    }
    tell_holds(call, timers);
    return done;
  }
  throw NotFound{"process '" + in_one_line(name) + "' isn't in this database"};
}

/// A timer's place in the list: "2026-11-23T10:00:00.000000Z/PROCESS/KEY/KIND".
std::string place_of(const TimerStatus& timer) {
  return to_string(timer.due_at) + '/' + timer.name.process + '/' + timer.name.key + '/' +
         timer.name.kind;
}

TimerStatus timer_at(const std::string& place) {
  const std::size_t first = place.find('/');
  const std::size_t second = place.find('/', first + 1);
  const std::size_t last = place.rfind('/');
  const auto due = parse_timestamp(place.substr(0, first));
  if (!due || second == std::string::npos || last <= second) {
    throw Misuse{"--after takes what the list says at its end: TIME/PROCESS/KEY/KIND"};
  }
  return {.name = {.process = place.substr(first + 1, second - first - 1),
                   .key = place.substr(second + 1, last - second - 1),
                   .kind = place.substr(last + 1)},
          .due_at = *due};
}

TimerQuery timers_asked_for(const Arguments& arguments) {
  const TimeRange due{arguments};
  const auto after = arguments.text("--after");
  return {.process = arguments.text("--process").value_or(""),
          .key = arguments.text("--key").value_or(""),
          .kind = arguments.text("--kind").value_or(""),
          .state = arguments.has("--parked") ? std::optional{TimerState::parked} : std::nullopt,
          .due = arguments.has("--due"),
          .overdue = arguments.has("--overdue"),
          .due_since = due.since,
          .due_until = due.until,
          .after = after ? std::optional{timer_at(*after)} : std::nullopt};
}

int list_timers(Invocation& call) {
  TimerQuery query = timers_asked_for(call.arguments);
  if (query.state && (query.due || query.overdue)) {
    throw Misuse{"a parked timer isn't due; leave --parked, or --due and --overdue out"};
  }
  Page page{call.arguments};
  StoreSession session{call, {.only_reads = true}};
  TimerOperations timers{session.store()};
  Listing listing{call.out, description::timer};
  std::optional<Timestamp> looked_until;
  if (!query.kind.empty() && query.key.empty() && page.is_bounded()) {
    looked_until = timers.due_after(query, most_looked);
    if (query.due_until && looked_until > query.due_until) looked_until.reset();
    if (looked_until) query.due_until = looked_until;
  }
  for (bool goes_on = true; goes_on;) {
    query.limit = static_cast<int>(std::min(page.rows_read(), rows_at_once));
    const auto found = timers.list(query);
    for (const TimerStatus& timer : found) {
      if (page.take(place_of(timer))) listing.add(timer);
    }
    goes_on = std::ssize(found) == query.limit && page.is_complete();
    if (goes_on) query.after = found.back();
  }
  if (looked_until) {
    // Names of processes and keys are never empty, so all timers due then come after this place.
    page.stop(to_string(*looked_until + std::chrono::microseconds{1}) + "///", most_looked);
  }
  if (page.shown() > 0) listing.print();
  if (page.shown() == 0 && page.is_complete() && !call.out.is_json()) {
    call.out.note("No such timer is set.");
  }
  page.tell(call.out, "timers", 0);
  tell_holds(call, timers);
  return done;
}

TimerName timer_name(const Arguments& arguments) {
  const auto& words = arguments.operands();
  return {words[0], words[1], words[2]};
}

int show_timer(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  TimerOperations timers{session.store()};
  const TimerName name = timer_name(call.arguments);
  const auto timer = timers.show(name);
  if (!timer) {
    throw NotFound{"timer '" + in_one_line(name.kind) + "' of '" + in_one_line(name.key) +
                   "' isn't set: it fired, or was cleared"};
  }
  if (call.out.is_json()) {
    print_json(call.out, description::timer, *timer);
  } else {
    sheet_of(description::timer, *timer).print(call.out);
  }
  tell_holds(call, timers);
  return done;
}

/// "+15m" counts from now; any other text is a time.
Timestamp new_time(const std::string& text, Timestamp now) {
  if (!text.starts_with('+')) {
    if (const auto time = parse_date_or_time(text)) return *time;
    const std::string later = parse_duration(text) ? text : "15m";
    throw Misuse{"TIME is a time such as 2026-11-23T10:00+02:00, or +" + later + " for in " +
                 later + "; not '" + in_one_line(text) + "'"};
  }
  const auto later = parse_duration(std::string_view{text}.substr(1));
  if (!later) throw Misuse{not_a_duration("TIME after +", text.substr(1))};
  return now + *later;
}

int move(Invocation& call) {
  const Timestamp due = new_time(call.arguments.operands()[3], system_clock().now());
  StoreSession session{call};
  TimerOperations{session.store(), call.who()}.move(timer_name(call.arguments), due);
  call.out.note("Due at " + to_string(due) + ".");
  return done;
}

int cancel_timer(Invocation& call) {
  const TimerName name = timer_name(call.arguments);
  StoreSession session{call};
  if (!call.confirm("Timer '" + in_one_line(name.kind) + "' of '" + in_one_line(name.key) +
                    "' will never fire. Continue?")) {
    return failed;
  }
  TimerOperations{session.store(), call.who()}.cancel(name);
  call.out.note("Cancelled.");
  return done;
}

int fire(Invocation& call) {
  StoreSession session{call};
  TimerOperations timers{session.store(), call.who()};
  timers.fire(timer_name(call.arguments));
  call.out.note("Its runner fires it now.");
  tell_holds(call, timers);
  return done;
}

int retry_timer(Invocation& call) {
  StoreSession session{call};
  const std::int64_t count = TimerOperations{session.store(), call.who()}.retry(
      call.arguments.operands().front(), call.arguments.text("--kind").value_or(""));
  print_result(call.out, {{"retried", count}}, "Retrying " + counted(count, "timer") + ".");
  return done;
}

int hold(Invocation& call) {
  StoreSession session{call};
  TimerOperations{session.store(), call.who()}.hold(
      call.arguments.text("--why").value_or("held by hand"));
  call.out.note("No timer fires until 'timers resume'.");
  return done;
}

int resume_timers(Invocation& call) {
  StoreSession session{call, {.only_reads = call.arguments.has("--dry-run")}};
  TimerOperations timers{session.store(), call.who()};
  const auto holds = timers.holds();
  const auto due = timers.list({.due = true, .limit = 1'000'000});
  if (!due.empty() && !call.out.is_json()) print_list(call.out, description::timer, due);
  std::string reasons;
  for (const TimerHold& one : holds) {
    reasons.append(reasons.empty() ? "" : "; ").append(in_one_line(one.detail));
  }
  const auto result = [&](bool is_done) {
    print_result(call.out,
                 {{"holds", json_list(description::timer_hold, holds)},
                  {"due", json_list(description::timer, due)},
                  {"resumed", is_done}},
                 holds.empty() ? "Nothing holds timers."
                 : is_done     ? "Resumed."
                               : reasons + '.');
    return done;
  };
  if (call.arguments.has("--dry-run") || holds.empty()) return result(false);
  if (!call.confirm(reasons + ". " + counted(static_cast<std::int64_t>(due.size()), "timer") +
                    " will fire at once. Continue?")) {
    return failed;
  }
  timers.resume();
  return result(true);
}

int log(Invocation& call) {
  const Arguments& arguments = call.arguments;
  StoreSession session{call, {.only_reads = true}};
  print_list(
      call.out, description::timer_action,
      TimerOperations{session.store()}.actions(
          {.before = arguments.integer("--before", {1, largest}),
           .limit = static_cast<int>(arguments.integer("--limit", {1, 1'000'000}).value_or(100))}));
  return done;
}

const Operand process_operand{"PROCESS", "the process"};
const Operand key_operand{"KEY", "the instance, such as a stream's name"};
const Operand kind_operand{"KIND", "the timer's name"};
constexpr Option kind_option{"--kind", "NAME", "only timers of this name"};

Command timers_list_command() {
  return {.path = "timers list",
          .summary = "List timers in order of due time",
          .options = {db_option,
                      {"--due", "", "only timers that are due"},
                      {"--overdue", "", "only timers that have been due for a minute"},
                      {"--parked", "", "only parked timers"},
                      {"--process", "NAME", "only timers of this process"},
                      kind_option,
                      {"--key", "KEY", "only timers of this instance"},
                      {"--since", "TIME",
                       "due since: 2026-11-23, 2026-11-23T10:00+02:00, or 15m for 15 minutes ago"},
                      {"--until", "TIME", "due until, given as for --since"},
                      limit_option,
                      {"--after", "PLACE", "continue after this timer, as the list's end names it"},
                      look_further_option},
          .examples = {{"what should have fired", "timers list --overdue"},
                       {"of one booking", "timers list --key booking-7"}},
          .run = list_timers};
}

}  // namespace

std::vector<Command> process_commands() {
  return {
      {.path = "processes list",
       .summary = "List processes with their timers and lag",
       .options = {db_option},
       .examples = {{"as JSON", "processes list --json"}},
       .run = list_processes},
      {.path = "processes show",
       .summary = "Show one process",
       .operands = {process_operand},
       .options = {db_option},
       .examples = {{"one", "processes show payment_deadline"}},
       .run = show_process},
  };
}

std::vector<Command> timer_commands() {
  return {
      timers_list_command(),
      {.path = "timers show",
       .summary = "Show one timer",
       .operands = {process_operand, key_operand, kind_operand},
       .options = {db_option},
       .examples = {{"one", "timers show payment_deadline booking-7 not_paid"}},
       .run = show_timer},
      {.path = "timers move",
       .summary = "Make a timer due at another time",
       .about = "Of a timer that recurs, only the next time is moved. A parked timer is tried "
                "again.",
       .operands = {process_operand,
                    key_operand,
                    kind_operand,
                    {"TIME", "2026-11-23T10:00+02:00, or +15m for in 15 minutes"}},
       .options = {db_option},
       .examples = {{"an hour more", "timers move payment_deadline booking-7 not_paid +1h"}},
       .run = move},
      {.path = "timers cancel",
       .summary = "Clear a timer, so that it never fires",
       .operands = {process_operand, key_operand, kind_operand},
       .options = {db_option, yes_option},
       .examples = {{"one", "timers cancel payment_deadline booking-7 not_paid --yes"}},
       .run = cancel_timer},
      {.path = "timers fire",
       .summary = "Fire a timer now",
       .about = "Its runner fires it when it has handled all events. A parked timer is tried "
                "again.",
       .operands = {process_operand, key_operand, kind_operand},
       .options = {db_option},
       .examples = {{"one", "timers fire payment_deadline booking-7 not_paid"}},
       .run = fire},
      {.path = "timers retry",
       .summary = "Retry all parked timers of a process",
       .operands = {process_operand},
       .options = {db_option, kind_option},
       .examples = {{"after fixing the handler", "timers retry payment_deadline"}},
       .run = retry_timer},
      {.path = "timers hold",
       .summary = "Hold all timers of the database",
       .options = {db_option, {"--why", "TEXT", "what others read"}},
       .examples = {{"before a copy of the file", "timers hold --why 'moving the database'"}},
       .run = hold},
      {.path = "timers resume",
       .summary = "Let timers fire again, after a restored backup, a clock jump or a hold",
       .about = "Lists the timers that are due and would fire at once.",
       .options = {db_option, dry_run_option, yes_option},
       .examples = {{"see what would fire", "timers resume --dry-run"}},
       .run = resume_timers},
      timers_check_command(),
      {.path = "timers log",
       .summary = "List what operators did to timers, newest first",
       .options = {db_option, limit_option, {"--before", "N", "only actions before this one"}},
       .examples = {{"the last ones", "timers log --limit 10"}},
       .run = log},
  };
}

}  // namespace stela::tool
