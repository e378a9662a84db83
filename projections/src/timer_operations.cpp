#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/projections/timers.hpp>

#include "builds.hpp"
#include "database/database.hpp"
#include "database/host.hpp"
#include "database/stored_enum.hpp"
#include "projections_sql.hpp"
#include "projections_sql/parked.hpp"
#include "projections_sql/timer_operations.hpp"
#include "projections_sql/timers.hpp"
#include "timer_rows.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>

namespace stela {

namespace sql = projections::sql;
using database::Connection;
using projections::Build;

namespace {

std::string in_words(const TimerName& timer) {
  return "timer '" + timer.kind + "' of '" + timer.key + "' (process '" + timer.process + "')";
}

TimerState state_of(std::string_view stored, Timestamp due, Timestamp now) {
  const auto state = database::parse_stored(
      {TimerState::pending, TimerState::unknown, TimerState::parked}, stored);
  const bool is_out_of_grace = due + unknown_timer_grace <= now;
  return state == TimerState::unknown && is_out_of_grace ? TimerState::parked : state;
}

std::string actor_of(std::string_view metadata) {
  try {
    return metadata.empty() ? std::string{} : metadata::decode(metadata).actor;
  } catch (const codec::DecodeError&) {
    return {};
  }
}

TimerStatus read_status(const sql::listed_timer_row& row, Timestamp now) {
  TimerStatus status{
      .name = {std::string{row.process()}, std::string{row.key()}, std::string{row.kind()}},
      .version = static_cast<int>(row.version()),
      .state = state_of(row.state(), row.due_at(), now),
      .due_at = row.due_at(),
      .attempts = static_cast<int>(row.attempts()),
      .error = std::string{row.error()},
      .recurrence = detail::in_words(row.recurrence()),
      .set_at = row.set_at(),
      .correlation_id = std::string{row.correlation_id()},
      .causation_id = EventId::parse(row.causation_id()).value_or(EventId{}),
      .actor = actor_of(row.metadata()),
      .payload = std::string{row.payload()}};
  const bool is_pending = status.state == TimerState::pending;
  if (is_pending) status.late = std::max(now - status.due_at, std::chrono::microseconds{0});
  if (is_pending && status.attempts > 0) status.next_attempt_at = row.wake_at();
  return status;
}

Timestamp due_before_of(const TimerQuery& query, Timestamp now) {
  Timestamp due_before = Timestamp::max();
  if (query.due) due_before = now;
  if (query.overdue) due_before = now - timer_overdue_after;
  return std::min(due_before, query.due_until.value_or(Timestamp::max()));
}

/// Where the list of one process begins. Keys aren't empty, so all timers due at `due` come after
/// an empty key.
struct Start {
  Timestamp due;
  std::string_view key = {};
  std::string_view kind = {};

  static Start of(const TimerQuery& query, std::string_view process) {
    if (!query.after) return {query.due_since.value_or(Timestamp::min())};
    const TimerStatus& after = *query.after;
    if (process == after.name.process) return {after.due_at, after.name.key, after.name.kind};
    const bool is_before = process < after.name.process;
    return {after.due_at + std::chrono::microseconds{is_before ? 1 : 0}};
  }
};

std::vector<std::string> processes_asked_for(Connection& connection, const TimerQuery& query) {
  if (!query.process.empty()) return {query.process};
  std::vector<std::string> processes;
  auto rows = connection.rows(sql::processes_of_timers{});
  while (rows.step()) processes.emplace_back(rows.process());
  return processes;
}

/// Follows the indexes, and reads no more of a process than there is room for.
std::vector<TimerStatus> list_timers(Connection& connection, const TimerQuery& query,
                                     Timestamp now) {
  std::vector<TimerStatus> all;
  const auto read = [&](const auto& statement) {
    auto rows = connection.rows(statement);
    while (rows.step()) all.push_back(read_status(rows, now));
  };
  const bool must_be_pending = query.due || query.overdue || query.state == TimerState::pending;
  const auto state = to_string(query.state.value_or(TimerState::pending));
  for (const std::string& process : processes_asked_for(connection, query)) {
    const Start start = Start::of(query, process);
    const auto fill = [&](auto statement) {
      statement.process = process;
      statement.kind = database::or_null(query.kind);
      statement.due_before = due_before_of(query, now);
      statement.after_due = start.due;
      statement.after_key = start.key;
      statement.after_kind = start.kind;
      return statement;
    };
    const auto fill_most = [&](auto statement) {
      statement.most = query.limit;
      return fill(statement);
    };
    if (!query.key.empty()) {
      auto of_key = fill(sql::timers_of_key{});
      of_key.key = query.key;
      if (must_be_pending || query.state) of_key.state = state;
      read(of_key);
      continue;
    }
    if (must_be_pending || !query.state) {
      read(fill_most(sql::timers_on_time{}));
      read(fill_most(sql::timers_tried_again{}));
    }
    if (must_be_pending) continue;
    auto set_aside = fill_most(sql::timers_set_aside{});
    if (query.state) set_aside.state = state;
    read(set_aside);
  }
  const auto place = [](const TimerStatus& timer) {
    return std::tie(timer.due_at, timer.name.process, timer.name.key, timer.name.kind);
  };
  std::sort(all.begin(), all.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  if (std::ssize(all) > query.limit) all.resize(static_cast<std::size_t>(query.limit));
  return all;
}

void count_timers(Connection& connection, ProcessStatus& status, Timestamp now) {
  {
    auto row = connection.rows(
        sql::count_pending{.process = status.name, .most = most_counted_timers + 1});
    row.step();
    status.pending = std::min(row.pending(), most_counted_timers);
    status.is_pending_lower_bound = row.pending() > most_counted_timers;
  }
  {
    auto row = connection.rows(
        sql::count_set_aside{.process = status.name, .grace_end = now - unknown_timer_grace});
    row.step();
    status.unknown = row.unknown();
    status.parked = row.parked();
  }
  {
    auto row = connection.rows(sql::count_due{
        .process = status.name, .now = now, .overdue_since = now - timer_overdue_after});
    row.step();
    status.due = row.due();
    status.overdue = row.overdue();
    if (status.due > 0) status.oldest_due = now - row.first();
  }
  auto first = connection.rows(sql::first_wake{.process = status.name});
  if (first.step()) status.next_due_at = first.wake_at();
}

ProcessStatus process_status(Connection& connection, const Build& build, std::int64_t last,
                             Timestamp now) {
  const auto [lag_events, lag] = projections::lag_of(connection, build, last, now);
  ProcessStatus status{.name = build.name,
                       .position = GlobalSequence{build.position},
                       .lag_events = lag_events,
                       .lag = lag,
                       .owner = build.owner,
                       .stopped = build.stopped,
                       .error = build.failing.error};
  {
    auto parked = connection.rows(sql::count_parked{.name = build.name, .build = build.number});
    parked.step();
    status.parked_events = parked.parked();
  }
  count_timers(connection, status, now);
  return status;
}

void note(Connection& connection, std::string_view who, std::string_view what,
          std::string_view detail, Timestamp now) {
  connection.run(sql::insert_timer_action{.at = now, .who = who, .what = what, .detail = detail});
}

/// Stopping or resuming all timers is also recorded as a change of state.
void note_hold(Connection& connection, std::string_view who, std::string_view what,
               std::string_view detail, Timestamp now) {
  note(connection, who, what, detail, now);
  database::note(connection, now,
                 database::StateChange{.part = "timers",
                                       .subject = {},
                                       .what = what == "hold" ? "held" : "resumed",
                                       .who = who,
                                       .detail = detail});
}

[[noreturn]] void refuse_missing(const TimerName& timer) {
  throw NotFound{in_words(timer) + " isn't set: it fired, or was cleared"};
}

/// Changes the timer, and records the operator. `work` returns how many rows it changed.
void change(Store& store, const std::string& who, std::string_view what, const TimerName& timer,
            const std::string& how, FunctionRef<std::int64_t(Connection&, Timestamp)> work) {
  store.database().write([&](Connection& connection) {
    const Timestamp now = store.database().now();
    if (!projections::has_tables(connection) || work(connection, now) == 0) {
      refuse_missing(timer);
    }
    note(connection, who, what, in_words(timer) + how, now);
  });
}

std::vector<TimerHold> published(const std::vector<projections::Hold>& holds) {
  std::vector<TimerHold> all;
  for (const projections::Hold& hold : holds) {
    std::string detail = hold.detail;
    if (hold.reason == HoldReason::restored && detail.empty()) {
      detail = "this database is a backup that was made at " + to_string(hold.since);
    }
    all.push_back({hold.reason, hold.since, std::move(detail)});
  }
  return all;
}

}  // namespace

TimerOperations::TimerOperations(Store& store, std::string who)
    : store_{store.anchor()}, who_{who.empty() ? host::user() : std::move(who)} {}

std::vector<ProcessStatus> TimerOperations::processes() {
  std::vector<ProcessStatus> all;
  const std::int64_t last = store_.last_sequence().value();
  const Timestamp now = store_.database().now();
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!projections::has_tables(connection)) return;
    const std::vector<Build> builds = projections::list_builds(connection);
    const auto add = [&](std::string_view name, std::int64_t fired, std::int64_t failed) {
      const Build* const build = projections::find(builds, name, BuildState::living);
      if (build == nullptr) return;
      all.push_back(process_status(connection, *build, last, now));
      all.back().fired = fired;
      all.back().failed = failed;
    };
    auto rows = connection.rows(sql::processes{});
    while (rows.step()) add(rows.name(), rows.fired(), rows.failed());
  });
  return all;
}

std::vector<TimerStatus> TimerOperations::list(const TimerQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  std::vector<TimerStatus> all;
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!projections::has_tables(connection)) return;
    all = list_timers(connection, query, store_.database().now());
  });
  return all;
}

std::optional<Timestamp> TimerOperations::due_after(const TimerQuery& query, std::int64_t timers) {
  std::optional<Timestamp> first;
  store_.database().read([&](Connection& connection) {
    first.reset();
    if (!projections::has_tables(connection)) return;
    for (const std::string& process : processes_asked_for(connection, query)) {
      auto row = connection.rows(sql::nth_pending_timer{
          .process = process, .from_wake = Start::of(query, process).due, .skipped = timers});
      if (row.step()) first = std::min(first.value_or(row.wake_at()), Timestamp{row.wake_at()});
    }
  });
  return first;
}

std::optional<TimerStatus> TimerOperations::show(const TimerName& timer) {
  if (timer.process.empty() || timer.key.empty() || timer.kind.empty()) return std::nullopt;
  auto found = list({.process = timer.process, .key = timer.key, .kind = timer.kind, .limit = 1});
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<TimerHold> TimerOperations::holds() {
  std::vector<TimerHold> all;
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!projections::has_tables(connection)) return;
    all = published(projections::read_holds(connection));
  });
  return all;
}

std::vector<OperatorAction> TimerOperations::actions(const ActionQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  std::vector<OperatorAction> all;
  if (query.items_of != 0) return all;
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!projections::has_tables(connection)) return;
    const std::int64_t before = query.before.value_or(std::numeric_limits<std::int64_t>::max());
    const auto add = [&](const auto& statement) {
      auto rows = connection.rows(statement);
      while (rows.step()) {
        all.push_back({rows.action(), rows.at(), std::string{rows.who()}, std::string{rows.what()},
                       std::string{rows.detail()}});
      }
    };
    if (query.direction == Direction::backward) {
      add(sql::list_timer_actions{.after = query.after, .before = before, .most = query.limit});
    } else {
      add(sql::list_timer_actions_forward{
          .after = query.after, .before = before, .most = query.limit});
    }
  });
  return all;
}

void TimerOperations::move(const TimerName& timer, Timestamp due) {
  if (due >= detail::end_of_time) {
    throw UsageError{in_words(timer) + " would be due after the year 9999"};
  }
  due = std::max(due, detail::first_time);
  change(store_, who_, "move", timer, " to " + to_string(due),
         [&](Connection& connection, Timestamp) {
           return connection.run(sql::move_timer{
               .process = timer.process, .key = timer.key, .kind = timer.kind, .due_at = due});
         });
}

void TimerOperations::cancel(const TimerName& timer) {
  change(store_, who_, "cancel", timer, {}, [&](Connection& connection, Timestamp) {
    return connection.run(
        sql::clear_timer{.process = timer.process, .key = timer.key, .kind = timer.kind});
  });
}

void TimerOperations::fire(const TimerName& timer) {
  change(store_, who_, "fire", timer, {}, [&](Connection& connection, Timestamp now) {
    return connection.run(sql::fire_timer{
        .process = timer.process, .key = timer.key, .kind = timer.kind, .now = now});
  });
}

std::int64_t TimerOperations::retry(std::string_view process, std::string_view kind) {
  std::int64_t count = 0;
  store_.database().write([&](Connection& connection) {
    const bool is_known = projections::has_tables(connection) &&
                          projections::process_names(connection).contains(std::string{process});
    if (!is_known) {
      throw NotFound{"process '" + std::string{process} + "' isn't in this database"};
    }
    count = connection.run(sql::retry_timers{.process = process, .kind = database::or_null(kind)});
    std::string detail = std::to_string(count) + " parked timers of '";
    note(connection, who_, "retry", detail.append(process).append("'"), store_.database().now());
  });
  return count;
}

void TimerOperations::hold(std::string_view why) {
  store_.database().migrate("projections", sql::migrations, sql::migrations_on_postgres);
  store_.database().write([&](Connection& connection) {
    const Timestamp now = store_.database().now();
    projections::set_hold(connection, {.since = now, .detail = std::string{why}});
    note_hold(connection, who_, "hold", why, now);
  });
}

std::vector<TimerHold> TimerOperations::resume() {
  std::vector<TimerHold> held;
  store_.database().write([&](Connection& connection) {
    held.clear();
    if (!projections::has_tables(connection)) return;
    const auto holds = projections::read_holds(connection);
    held = published(holds);
    for (const projections::Hold& hold : holds) {
      projections::drop_hold(connection, hold.reason);
      note_hold(connection, who_, "resume", to_string(hold.reason), store_.database().now());
    }
  });
  return held;
}

}  // namespace stela
