#include "timer_rows.hpp"

#include "database/stored_enum.hpp"
#include "projections_sql/timers.hpp"

#include <stela/framework/context.hpp>
#include <stela/framework/detail/metadata.hpp>

#include <algorithm>

namespace stela::projections {

using database::Connection;

namespace {

/// Each setting of a timer gets its own generation, whoever drives the process.
std::int64_t next_generation(Seat& seat) {
  constexpr std::int64_t settings_an_epoch = std::int64_t{1} << 32;
  seat.generation = std::max(seat.generation, seat.build.epoch * settings_an_epoch) + 1;
  return seat.generation;
}

std::string text_of(const EventId& id) {
  return id.is_nil() ? std::string{} : id.to_string();
}

}  // namespace

Timer read_timer(const sql::timer_row& row) {
  return {.process = std::string{row.process()},
          .key = std::string{row.key()},
          .kind = std::string{row.kind()},
          .version = static_cast<int>(row.version()),
          .generation = row.generation(),
          .state = database::parse_stored(
              {TimerState::pending, TimerState::unknown, TimerState::parked}, row.state()),
          .due_at = row.due_at(),
          .wake_at = row.wake_at(),
          .attempts = static_cast<int>(row.attempts()),
          .error = std::string{row.error()},
          .recurrence = std::string{row.recurrence()},
          .set_at = row.set_at(),
          .correlation_id = std::string{row.correlation_id()},
          .causation_id = EventId::parse(row.causation_id()).value_or(EventId{}),
          .metadata = std::string{row.metadata()},
          .payload = std::string{row.payload()}};
}

void apply_changes(Connection& connection, Seat& seat, const Process& process, Timestamp now) {
  const auto changes = detail::ProcessAccess::changes(process);
  if (changes.empty()) return;
  const Context& context = current_context();
  const std::string causation = text_of(context.causation_id);
  const std::string metadata = metadata::encode(context);
  for (const detail::TimerChange& change : changes) {
    if (!change.due) {
      connection.run(
          sql::clear_timer{.process = seat.build.name, .key = process.key(), .kind = change.kind});
      continue;
    }
    connection.run(sql::set_timer{.process = seat.build.name,
                                  .key = process.key(),
                                  .kind = change.kind,
                                  .version = change.version,
                                  .generation = next_generation(seat),
                                  .due_at = *change.due,
                                  .recurrence = change.recurrence,
                                  .set_at = now,
                                  .correlation_id = context.correlation_id,
                                  .causation_id = causation,
                                  .metadata = metadata,
                                  .payload = change.payload});
  }
}

std::vector<Timer> due_timers(Connection& connection, const Build& build, Timestamp now, int most) {
  std::vector<Timer> timers;
  auto rows = connection.rows(
      sql::due_timers{.process = build.name, .build = build.number, .now = now, .most = most});
  while (rows.step()) timers.push_back(read_timer(rows));
  return timers;
}

std::optional<Timestamp> next_wake(Connection& connection, const Build& build) {
  auto row = connection.rows(sql::next_wake{.process = build.name, .build = build.number});
  if (!row.step()) return std::nullopt;
  return row.wake_at();
}

bool take(Connection& connection, Seat& seat, const Timer& timer, Timestamp now) {
  if (timer.recurrence.empty()) {
    return connection.run(sql::take_timer{.process = timer.process,
                                          .key = timer.key,
                                          .kind = timer.kind,
                                          .generation = timer.generation}) == 1;
  }
  const Timestamp next = detail::next_due(timer.recurrence, timer.due_at, now);
  return connection.run(sql::set_again{.process = timer.process,
                                       .key = timer.key,
                                       .kind = timer.kind,
                                       .generation = timer.generation,
                                       .next_generation = next_generation(seat),
                                       .due_at = next}) == 1;
}

void note_failure(Connection& connection, const Timer& timer, TimerState state, Timestamp wake_at) {
  connection.run(sql::note_timer_failure{.process = timer.process,
                                         .key = timer.key,
                                         .kind = timer.kind,
                                         .generation = timer.generation,
                                         .state = to_string(state),
                                         .attempts = timer.attempts,
                                         .wake_at = wake_at,
                                         .error = timer.error});
}

bool knows_unknown(Connection& connection, const Seat& seat) {
  auto rows = connection.rows(sql::unknown_kinds{.process = seat.build.name});
  while (rows.step()) {
    if (seat.process->knows_timer(rows.kind(), static_cast<int>(rows.version()))) return true;
  }
  return false;
}

void adopt_unknown(Connection& connection, const Seat& seat) {
  std::vector<std::pair<std::string, std::int64_t>> known;
  {
    auto rows = connection.rows(sql::unknown_kinds{.process = seat.build.name});
    while (rows.step()) {
      if (!seat.process->knows_timer(rows.kind(), static_cast<int>(rows.version()))) continue;
      known.emplace_back(rows.kind(), rows.version());
    }
  }
  for (const auto& [kind, version] : known) {
    connection.run(
        sql::adopt_unknown{.process = seat.build.name, .kind = kind, .version = version});
  }
}

std::set<std::string> process_names(Connection& connection) {
  std::set<std::string> names;
  auto rows = connection.rows(sql::processes{});
  while (rows.step()) names.emplace(rows.name());
  return names;
}

void forget_process(Connection& connection, std::string_view name) {
  connection.run(sql::delete_timers_of_process{.process = name});
  connection.run(sql::forget_process{.name = name});
}

std::vector<Hold> read_holds(Connection& connection) {
  std::vector<Hold> holds;
  auto rows = connection.rows(sql::holds{});
  while (rows.step()) {
    holds.push_back(
        {.reason = database::parse_stored({HoldReason::clock, HoldReason::restored,
                                           HoldReason::imported, HoldReason::by_operator},
                                          rows.reason()),
         .since = rows.since(),
         .ahead = std::chrono::microseconds{rows.ahead()},
         .detail = std::string{rows.detail()}});
  }
  return holds;
}

void set_hold(Connection& connection, const Hold& hold) {
  connection.run(sql::set_hold{.reason = to_string(hold.reason),
                               .since = hold.since,
                               .ahead = hold.ahead.count(),
                               .detail = hold.detail});
}

void drop_hold(Connection& connection, HoldReason reason) {
  if (reason == HoldReason::restored) {
    connection.run(sql::accept_copy{});
  } else {
    connection.run(sql::drop_hold{.reason = to_string(reason)});
  }
}

}  // namespace stela::projections
