// Operations on processes and their timers that don't need their code, for tools.
#pragma once

#include <stela/eventstore/operator_action.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/states.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// A timer that has been due for longer is overdue.
inline constexpr std::chrono::seconds timer_overdue_after{60};
/// A timer that no runner has known for longer counts as parked.
inline constexpr std::chrono::hours unknown_timer_grace{1};

/// Names a timer: an instance of a process has one of each kind.
struct TimerName {
  std::string process = {};
  std::string key = {};
  std::string kind = {};

  friend bool operator==(const TimerName&, const TimerName&) = default;
};

struct TimerStatus {
  TimerName name = {};
  int version = 1;
  /// `unknown` only while the grace lasts; `parked` after that.
  TimerState state = TimerState::pending;
  Timestamp due_at = {};
  /// How long it has been due; 0 if it isn't, or if it is parked.
  std::chrono::microseconds late{0};
  /// Set if it failed and will be tried again.
  std::optional<Timestamp> next_attempt_at = {};
  int attempts = 0;
  std::string error = {};
  /// "every 01:00:00", "daily at 09:30 in Europe/Berlin"; empty if it fires once.
  std::string recurrence = {};
  Timestamp set_at = {};
  /// The correlation and cause of the event that set it, and of the events that it will record.
  std::string correlation_id = {};
  EventId causation_id = {};
  std::string actor = {};
  /// Encoded like the store's events.
  std::string payload = {};
};

struct TimerQuery {
  /// Empty: any.
  std::string process = {};
  std::string key = {};
  std::string kind = {};
  std::optional<TimerState> state = {};
  /// Only due timers, or only those due for longer than `timer_overdue_after`.
  bool due = false;
  bool overdue = false;
  /// Only timers due since, or until.
  std::optional<Timestamp> due_since = {};
  std::optional<Timestamp> due_until = {};
  /// Only timers after this one: for the next page.
  std::optional<TimerStatus> after = {};
  int limit = 100;
};

/// Why timers are held.
struct TimerHold {
  HoldReason reason = HoldReason::by_operator;
  Timestamp since = {};
  std::string detail = {};
};

/// The most pending timers of a process that are counted: counting visits each of them.
inline constexpr std::int64_t most_counted_timers = 10'000;

/// A process and its timers.
struct ProcessStatus {
  std::string name = {};
  /// It has handled the events up to this sequence.
  GlobalSequence position = {};
  /// How many events it is behind the store, and how long the first of them has waited; 0 if it has
  /// handled all.
  std::int64_t lag_events = 0;
  std::chrono::microseconds lag{0};
  std::string owner = {};
  bool stopped = false;
  /// Why it is stopped or retries an event.
  std::string error = {};
  /// Parked events, which hold the timers of their instances.
  std::int64_t parked_events = 0;
  /// Timers that are set and not parked, up to `most_counted_timers`, which is then a lower bound.
  /// Then due timers, including those that will be retried, and overdue ones.
  std::int64_t pending = 0;
  bool is_pending_lower_bound = false;
  std::int64_t due = 0;
  std::int64_t overdue = 0;
  /// How long the first due timer has been due.
  std::chrono::microseconds oldest_due{0};
  /// When the next timer is due or will be retried.
  std::optional<Timestamp> next_due_at = {};
  std::int64_t unknown = 0;
  std::int64_t parked = 0;
  /// Counted since it was registered.
  std::int64_t fired = 0;
  std::int64_t failed = 0;
};

/// Inspects and changes the timers of a database, without the code of their processes. Runners
/// notice changes at once, in any process. Each change is recorded with the operator's name. If the
/// database has no such process or timer, a query returns nothing and a change throws NotFound.
/// Threads: any number at once, beside runners and appends.
class STELA_PROJECTIONS_EXPORT TimerOperations {
 public:
  /// `who` is the name of the operator, for the log of actions. Empty: the user and host of the
  /// process. The store must outlive it; its handle may be moved.
  explicit TimerOperations(Store& store, std::string who = {});

  /// All processes, by name.
  std::vector<ProcessStatus> processes();
  /// In order of due time.
  std::vector<TimerStatus> list(const TimerQuery& query = {});
  /// The due time of the timer that comes after this many pending ones of a process, from the
  /// query's place on. It limits a list of one kind, for which there is no index. Unset: there are
  /// fewer.
  std::optional<Timestamp> due_after(const TimerQuery& query, std::int64_t timers);
  std::optional<TimerStatus> show(const TimerName& timer);
  std::vector<TimerHold> holds();
  /// The newest first, without items.
  std::vector<OperatorAction> actions(const ActionQuery& query = {});

  /// Makes the timer due at another time, parked or not. For a recurring timer, only the next time
  /// is moved, and an interval counts from there.
  void move(const TimerName& timer, Timestamp due);
  /// Clears the timer: it won't fire.
  void cancel(const TimerName& timer);
  /// Makes the timer due now. Its runner fires it after all events. A parked timer is tried again.
  void fire(const TimerName& timer);
  /// Retries all parked timers of a process, or only those of `kind`. Returns how many.
  std::int64_t retry(std::string_view process, std::string_view kind = {});

  /// Holds all timers of the database until they are resumed.
  void hold(std::string_view why);
  /// Lets timers fire again after a restored backup, a jump of the clock or `hold`. Returns the
  /// former reasons to hold them; empty if there were none.
  std::vector<TimerHold> resume();

 private:
  Store& store_;
  std::string who_;
};

}  // namespace stela
