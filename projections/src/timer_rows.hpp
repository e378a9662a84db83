// The rows of the table `projection_timers`, and the holds on them.
#pragma once

#include "database/connection.hpp"
#include "seat.hpp"

#include <stela/framework/clock.hpp>
#include <stela/projections/process.hpp>
#include <stela/projections/states.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::projections {

namespace sql {
class timer_row;
}

/// A stored timer.
struct Timer {
  std::string process = {};
  std::string key = {};
  std::string kind = {};
  int version = 1;
  std::int64_t generation = 0;
  TimerState state = TimerState::pending;
  Timestamp due_at = {};
  Timestamp wake_at = {};
  int attempts = 0;
  std::string error = {};
  /// Empty: it fires once.
  std::string recurrence = {};
  Timestamp set_at = {};
  /// The context of the event that set it.
  std::string correlation_id = {};
  EventId causation_id = {};
  std::string metadata = {};
  std::string payload = {};
};

Timer read_timer(const sql::timer_row& row);

/// Writes the timers that the process set and cleared for its instance.
void apply_changes(database::Connection& connection, Seat& seat, const Process& process,
                   Timestamp now);

/// The first timers, in order, that are due at `now` and not held.
std::vector<Timer> due_timers(database::Connection& connection, const Build& build, Timestamp now,
                              int most);
/// When to fire the next timer that isn't held.
std::optional<Timestamp> next_wake(database::Connection& connection, const Build& build);

/// Removes the timer, or sets it to its next time; false if it has changed since it was read.
bool take(database::Connection& connection, Seat& seat, const Timer& timer, Timestamp now);

void note_failure(database::Connection& connection, const Timer& timer, TimerState state,
                  Timestamp wake_at);

/// Whether runners left timers that the process of `seat` knows.
bool knows_unknown(database::Connection& connection, const Seat& seat);
/// Makes those timers pending again.
void adopt_unknown(database::Connection& connection, const Seat& seat);

/// The names of all processes.
std::set<std::string> process_names(database::Connection& connection);
/// Forgets the process and its timers.
void forget_process(database::Connection& connection, std::string_view name);

struct Hold {
  HoldReason reason = HoldReason::by_operator;
  Timestamp since = {};
  /// How far a clock jumped forward.
  std::chrono::microseconds ahead{0};
  std::string detail = {};
};

std::vector<Hold> read_holds(database::Connection& connection);
void set_hold(database::Connection& connection, const Hold& hold);
void drop_hold(database::Connection& connection, HoldReason reason);

}  // namespace stela::projections
