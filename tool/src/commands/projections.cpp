// projections status, list, retry, skip, run, cancel, remove.
#include "description/projections.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/projections_check.hpp"
#include "commands/tenant_work.hpp"
#include "http/server.hpp"
#include "key_session.hpp"
#include "store_session.hpp"
#include "tenant_registry.hpp"
#include "worker/health.hpp"
#include "worker/pages.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/runner.hpp>
#include <stela/projections/timers.hpp>
#include <stela/tool/metrics.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

namespace stela::tool {
namespace {

using description::FailedEvent;

int show_projectors(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  Listing listing{call.out, description::projector};
  const std::vector<ProjectorStatus> projectors = ProjectionOperations{session.store()}.status();
  for (const ProjectorStatus& one : projectors) listing.add(one);
  if (!projectors.empty()) {
    listing.print();
  } else if (!call.out.is_json()) {
    call.out.note("This database has no projectors.");
  }
  return done;
}

/// A projector's build and an event; 0: the event that it fails at.
struct FailedPlace {
  std::string projector = {};
  std::int64_t build = 0;
  GlobalSequence sequence = {};

  std::string text() const {
    return projector + '@' + std::to_string(build) + '/' + std::to_string(sequence.value());
  }
};

FailedPlace place_asked_for(const Arguments& arguments) {
  const std::string text = arguments.text("--after").value_or("");
  if (text.empty()) return {};
  const std::size_t at = text.rfind('@');
  const std::size_t slash = text.rfind('/');
  if (at == std::string::npos || slash == std::string::npos || slash < at) {
    throw Misuse{"--after takes what the list says at its end: PROJECTOR@BUILD/EVENT"};
  }
  return {
      .projector = text.substr(0, at),
      .build = to_integer(text.substr(at + 1, slash - at - 1), "a build", {0, largest}),
      .sequence = GlobalSequence{to_integer(text.substr(slash + 1), "a sequence", {0, largest})}};
}

/// Lists the projectors' events that wait for an operator or for another attempt.
class FailedEvents {
 public:
  FailedEvents(Invocation& call, Store& store)
      : store_{store},
        operations_{store},
        page_{call.arguments},
        times_{call.arguments},
        types_{call.arguments.all("--type")},
        after_{place_asked_for(call.arguments)},
        listing_{call.out, description::failed_event} {}

  void list(const ProjectorStatus& one) {
    const auto place = std::tie(one.name, one.build);
    const auto after = std::tie(after_.projector, after_.build);
    if (place < after || !page_.is_complete()) return;
    const bool is_begun = place == after;
    if ((one.stopped || one.attempts > 0) && !is_begun) {
      const bool goes_on =
          add(one, {.projector = one.name,
                    .sequence = one.failing,
                    .type = type_of(one.failing),
                    .state = one.stopped ? "stopped" : "retrying",
                    .attempts = one.attempts,
                    .since = one.failing_since ? one.failing_since : one.stopped_at,
                    .error = one.error});
      if (!goes_on) return;
    }
    if (one.parked + one.skipped == 0 || one.state != BuildState::living) return;
    list_parked(one, is_begun ? after_.sequence : GlobalSequence{});
  }

  void finish(Output& out) {
    listing_.print();
    page_.tell(out, "failed events", 0);
  }

 private:
  std::string type_of(GlobalSequence sequence) {
    if (sequence == GlobalSequence{}) return {};
    for (const StoredEvent& event : store_.read_at({{sequence}})) return event.type();
    return {};
  }

  /// True if a filter may skip most rows.
  bool is_filtered() const noexcept { return !types_.empty() || times_.since || times_.until; }

  void list_parked(const ProjectorStatus& one, GlobalSequence after) {
    for (bool goes_on = true; goes_on;) {
      const std::int64_t wanted = is_filtered() ? rows_at_once : page_.rows_read();
      const auto most = static_cast<int>(std::min(wanted, rows_at_once));
      const auto found = operations_.parked(
          one.name, {.direction = page_.direction(), .after = after, .limit = most});
      goes_on = std::ssize(found) == most;
      for (const ParkedEvent& event : found) {
        after = event.sequence;
        const bool is_skipped = event.state == ParkedEventState::skipped;
        const bool is_to_retry = event.state == ParkedEventState::retry;
        const FailedEvent row{.projector = one.name,
                              .sequence = event.sequence,
                              .type = event.type,
                              .state = is_skipped    ? "skipped"
                                       : is_to_retry ? "to be retried"
                                                     : "parked",
                              .attempts = event.attempts,
                              .since = event.parked_at,
                              .error = event.error};
        if (!add(one, row, is_skipped)) return;
      }
    }
  }

  /// False if that is enough.
  bool add(const ProjectorStatus& one, const FailedEvent& row, bool is_skipped = false) {
    const bool is_failing = row.state == "stopped" || row.state == "retrying";
    const std::string place =
        FailedPlace{one.name, one.build, is_failing ? GlobalSequence{} : row.sequence}.text();
    if (!page_.look(place)) return false;
    const bool is_meant =
        types_.empty() || std::find(types_.begin(), types_.end(), row.type) != types_.end();
    if (is_skipped || !is_meant || !times_.has(row.since)) return true;
    if (!page_.take(place)) return false;
    listing_.add(row);
    return true;
  }

  Store& store_;
  ProjectionOperations operations_;
  Page page_;
  const TimeRange times_;
  const std::vector<std::string> types_;
  const FailedPlace after_;
  Listing<FailedEvent> listing_;
};

int list_failed(Invocation& call) {
  const auto& operands = call.arguments.operands();
  StoreSession session{call, {.only_reads = true}};
  FailedEvents events{call, session.store()};
  bool is_known = operands.empty();
  for (const ProjectorStatus& one : ProjectionOperations{session.store()}.status()) {
    if (!operands.empty() && one.name != operands.front()) continue;
    is_known = true;
    events.list(one);
  }
  if (!is_known) {
    throw NotFound{"projector '" + in_one_line(operands.front()) + "' isn't in this database"};
  }
  events.finish(call.out);
  return done;
}

std::optional<GlobalSequence> sequence_of(const Arguments& arguments) {
  if (arguments.operands().size() < 2) return std::nullopt;
  return GlobalSequence{to_integer(arguments.operands()[1], "a sequence", {1, largest})};
}

int retry_projector(Invocation& call) {
  const std::string& name = call.arguments.operands().front();
  const auto sequence = sequence_of(call.arguments);
  StoreSession session{call};
  if (sequence) {
    ProjectionOperations{session.store(), call.who()}.retry(name, *sequence);
  } else {
    ProjectionOperations{session.store(), call.who()}.retry(name);
  }
  call.out.note("Its runner retries now.");
  return done;
}

int skip(Invocation& call) {
  const std::string& name = call.arguments.operands().front();
  const GlobalSequence sequence = *sequence_of(call.arguments);
  StoreSession session{call};
  if (!call.confirm("'" + name + "' will never see event " + std::to_string(sequence.value()) +
                    ". Continue?")) {
    return failed;
  }
  ProjectionOperations{session.store(), call.who()}.skip(name, sequence);
  call.out.note("Skipped and recorded.");
  return done;
}

int remove(Invocation& call) {
  const std::string& name = call.arguments.operands().front();
  StoreSession session{call};
  if (!call.confirm("'" + name + "' and its tables will be removed. Continue?")) return failed;
  ProjectionOperations{session.store(), call.who()}.remove(name);
  call.out.note("Removed.");
  return done;
}

int cancel_rebuild(Invocation& call) {
  StoreSession session{call};
  ProjectionOperations{session.store(), call.who()}.cancel_rebuild(
      call.arguments.operands().front());
  call.out.note("Rebuild cancelled.");
  return done;
}

/// Answers HTTP requests about a runner.
HttpResponse projection_page(const HttpRequest& request, Store& store, const Signals& signals,
                             const PrometheusMetrics& reported) {
  ReadinessFacts facts{.at = store.conventions().clock->now(), .is_draining = signals.stopped()};
  std::vector<ProcessStatus> processes;
  try {
    facts.projectors = ProjectionOperations{store}.status();
    processes = TimerOperations{store}.processes();
  } catch (const Error& e) {
    facts.store_problem = e.what();
  }
  if (request.path == "/readyz") return readiness(reasons_not_ready(facts));
  const Facts seen{.at = facts.at,
                   .store_problem = facts.store_problem,
                   .projectors = facts.projectors,
                   .processes = processes};
  return metrics_page(metrics_text(facts.projectors, processes) + findings_text(seen) +
                      reported.text());
}

int run(Invocation& call) {
  if (serves_all_tenants(call)) return run_tenants(call);
  const Signals signals{[&call] { call.out.note("Handing over; a second signal exits at once."); }};
  PrometheusMetrics reported;
  KeySession keys{call, false};
  StoreSession session{call, {.metrics = &reported, .keys = keys.keyring()}};
  keys.require_for(session.store());
  std::optional<HttpServer> metrics;
  if (const auto address = call.arguments.text("--metrics")) {
    metrics.emplace(parse_address(*address, "the port of metrics"),
                    HttpPages{.at_once = other_page, .in_time = [&](const HttpRequest& request) {
                                return projection_page(request, session.store(), signals, reported);
                              }});
    call.out.note("Metrics at " + metrics->url() + "/metrics");
  }
  // Reactions append.
  session.prepare_to_append();
  Runner runner{session.projections(), {.worker = call.arguments.text("--id").value_or("")}};
  if (!call.arguments.has("--once")) {
    runner.run(signals.token());
    return done;
  }
  const RunnerTick tick = runner.run_once();
  if (call.out.is_json()) {
    print_json(call.out, description::runner_tick, tick);
  } else {
    const std::string timers =
        tick.timers_fired > 0 ? ", " + counted(tick.timers_fired, "timer") + " fired" : "";
    call.out.line(counted(tick.scanned, "event") + " read" + timers + ", " +
                  counted(tick.failed + tick.timers_failed, "handler") + " failed.");
  }
  return tick.failed + tick.timers_failed == 0 ? done : failed;
}

const Operand projector_operand{"NAME", "the projector, or reaction", true, false, "@projectors"};

}  // namespace

std::vector<Command> projection_commands() {
  return {
      {.path = "projections status",
       .summary = "List projectors and reactions with lag and errors",
       .options = {db_option},
       .examples = {{"show the lag of each", "projections status"}},
       .run = show_projectors},
      projections_check_command(),
      projections_history_command(),
      {.path = "projections list",
       .summary = "List events that projectors stopped at, retry or parked",
       .operands = {{"NAME", "of this projector only", false, false, "@projectors"}},
       .options = {db_option,
                   {"--type", "NAME", "only events of this type", "", true},
                   {"--since", "TIME",
                    "failing since: 2026-11-23, 2026-11-23T10:00+02:00, or 15m for 15 minutes ago"},
                   {"--until", "TIME", "failing until, given as for --since"},
                   {"--newest-first", "", "newest first, projector by projector"},
                   limit_option,
                   {"--after", "PLACE", "continue after this event, as the list's end names it"},
                   look_further_option},
       .examples = {{"of one projector", "projections list order_summary"},
                    {"the last ones", "projections list --newest-first --limit 10"}},
       .run = list_failed},
      {.path = "projections retry",
       .summary = "Retry a stopped projector, or a parked event",
       .operands = {projector_operand, {"SEQUENCE", "a parked event", false}},
       .options = {db_option},
       .examples = {{"after fixing the cause", "projections retry order_summary"}},
       .run = retry_projector},
      {.path = "projections skip",
       .summary = "Skip a failing event, or discard a parked one",
       .operands = {projector_operand, {"SEQUENCE", "the event"}},
       .options = {db_option, yes_option},
       .examples = {{"for good", "projections skip order_summary 17 --yes"}},
       .run = skip},
      replay_command(),
      rebuild_command(),
      {.path = "projections run",
       .summary = "Run projectors and reactions",
       .about = "Available in tools built with an application's types. With --tenants, and without "
                "--tenant and --db, it serves all active tenants, and says what stands still.",
       .options = {db_option,
                   {"--once", "", "catch up, then exit"},
                   {"--metrics", "ADDR",
                    "serve /metrics, /healthz and /readyz on a loopback port, or HOST:PORT"},
                   label_option,
                   {"--id", "NAME", "the runner's name"},
                   keys_option,
                   master_option,
                   erasures_option},
       .examples = {{"process what is committed, then exit", "projections run --once"}},
       .run = run},
      {.path = "projections cancel",
       .summary = "Cancel a rebuild",
       .operands = {projector_operand},
       .options = {db_option},
       .examples = {{"one", "projections cancel order_summary"}},
       .run = cancel_rebuild},
      {.path = "projections remove",
       .summary = "Remove a projector or reaction with its tables",
       .operands = {projector_operand},
       .options = {db_option, yes_option},
       .examples = {{"remove an unused projector", "projections remove order_summary --yes"}},
       .run = remove},
  };
}

}  // namespace stela::tool
