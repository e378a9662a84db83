// projections status, list, retry, skip, run, cancel, remove.
#include "description/projections.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/projections_check.hpp"
#include "store_session.hpp"
#include "worker/health.hpp"
#include "worker/http_server.hpp"

#include <stela/framework/not_found.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/runner.hpp>
#include <stela/projections/timers.hpp>
#include <stela/tool/metrics.hpp>

#include <optional>

namespace stela::tool {
namespace {

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

/// The events of a projector that wait for an operator, or for another attempt.
void add_failed(ProjectionOperations& operations, const ProjectorStatus& projector, int limit,
                std::vector<description::FailedEvent>& events) {
  if (projector.stopped || projector.attempts > 0) {
    events.push_back({.projector = projector.name,
                      .sequence = projector.failing,
                      .state = projector.stopped ? "stopped" : "retrying",
                      .attempts = projector.attempts,
                      .error = projector.error});
  }
  if (projector.parked == 0 || projector.state != BuildState::living) return;
  GlobalSequence after;
  for (int left = limit; left > 0;) {
    const auto page = operations.parked(projector.name, {.after = after, .limit = left});
    if (page.empty()) return;
    after = page.back().sequence;
    for (const ParkedEvent& one : page) {
      if (one.state == ParkedEventState::skipped) continue;
      --left;
      const bool is_to_retry = one.state == ParkedEventState::retry;
      events.push_back({projector.name, one.sequence, is_to_retry ? "to be retried" : "parked",
                        one.attempts, one.parked_at, one.error});
    }
  }
}

int list_failed(Invocation& call) {
  const auto& operands = call.arguments.operands();
  const auto limit =
      static_cast<int>(call.arguments.integer("--limit", {1, 1'000'000}).value_or(100));
  StoreSession session{call, {.only_reads = true}};
  ProjectionOperations operations{session.store()};
  std::vector<description::FailedEvent> events;
  bool is_known = operands.empty();
  for (const ProjectorStatus& one : operations.status()) {
    if (!operands.empty() && one.name != operands.front()) continue;
    is_known = true;
    add_failed(operations, one, limit, events);
  }
  if (!is_known) {
    throw NotFound{"projector '" + in_one_line(operands.front()) + "' isn't in this database"};
  }
  print_list(call.out, description::failed_event, events);
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
    ProjectionOperations{session.store()}.retry(name, *sequence);
  } else {
    ProjectionOperations{session.store()}.retry(name);
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
  ProjectionOperations{session.store()}.skip(name, sequence);
  call.out.note("Skipped and recorded.");
  return done;
}

int remove(Invocation& call) {
  const std::string& name = call.arguments.operands().front();
  StoreSession session{call};
  if (!call.confirm("'" + name + "' and its tables will be removed. Continue?")) return failed;
  ProjectionOperations{session.store()}.remove(name);
  call.out.note("Removed.");
  return done;
}

int cancel_rebuild(Invocation& call) {
  StoreSession session{call};
  ProjectionOperations{session.store()}.cancel_rebuild(call.arguments.operands().front());
  call.out.note("Rebuild cancelled.");
  return done;
}

/// What is asked of a runner over HTTP.
HttpResponse projection_page(std::string_view path, Store& store, const Signals& signals,
                             const PrometheusMetrics& reported) {
  ReadinessFacts facts{.at = store.conventions().clock->now(), .is_draining = signals.stopped()};
  std::vector<ProcessStatus> processes;
  try {
    facts.projectors = ProjectionOperations{store}.status();
    processes = TimerOperations{store}.processes();
  } catch (const Error& e) {
    facts.store_problem = e.what();
  }
  if (path == "/readyz") return readiness(reasons_not_ready(facts));
  const Facts seen{.at = facts.at,
                   .store_problem = facts.store_problem,
                   .projectors = facts.projectors,
                   .processes = processes};
  return metrics_page(metrics_text(facts.projectors, processes) + findings_text(seen) +
                      reported.text());
}

int run(Invocation& call) {
  const Signals signals{[&call] { call.out.note("Handing over; a second signal exits at once."); }};
  PrometheusMetrics reported;
  StoreSession session{call, {.metrics = &reported}};
  std::optional<HttpServer> metrics;
  if (const auto address = call.arguments.text("--metrics")) {
    metrics.emplace(parse_address(*address),
                    HttpPages{.at_once = other_page, .in_time = [&](std::string_view path) {
                                return projection_page(path, session.store(), signals, reported);
                              }});
    call.out.note("Metrics at " + metrics->url() + "/metrics");
  }
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
      {.path = "projections list",
       .summary = "List events that projectors stopped at, retry or parked",
       .operands = {{"NAME", "of this projector only", false, false, "@projectors"}},
       .options = {db_option, limit_option},
       .examples = {{"of one projector", "projections list order_summary"}},
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
       .about = "Available in tools built with an application's types.",
       .options = {db_option,
                   {"--once", "", "catch up, then exit"},
                   {"--metrics", "ADDR",
                    "serve /metrics, /healthz and /readyz on a loopback port, or HOST:PORT"},
                   {"--id", "NAME", "the runner's name"}},
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
