// How a feed fires the timers of a process.
#include "database/database.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"
#include "feed.hpp"
#include "follow/blame.hpp"
#include "projections_sql/timers.hpp"

#include <stela/framework/decision.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <set>
#include <utility>

namespace stela::projections {

using database::Connection;
using follow::Blame;
using follow::RollBack;

namespace {

/// A transaction of timers syncs once, and holds the lock while aggregates are loaded.
constexpr int least_timers_a_batch = 16;
constexpr int most_timers_a_batch = 256;
constexpr std::chrono::milliseconds longest_batch{25};
/// How long a process fires batch after batch before others get their turn.
constexpr std::chrono::milliseconds longest_turn{200};
/// How many events a transaction handles before its timers; if there are more, the next pass
/// handles them.
constexpr std::int64_t events_before_timers = 64;
/// How often a timer is retried at once when another writer changed its aggregate. Later attempts
/// count, because a handler may expect a version that its stream never reaches.
constexpr int tries_of_conflicts = 3;

std::int64_t head_of(Connection& connection) {
  auto row = connection.rows(sql::head{});
  row.step();
  return row.last();
}

/// Events caused by a timer have the context of the event that set it, and name that event as their
/// cause.
ContextScope scope_of(const Timer& timer) {
  static const StreamId stream = StreamId::of("timer", "due");
  static const EventKind kind;
  return ContextScope::handling(StoredEvent{.sequence = {},
                                            .stream = stream,
                                            .version = {},
                                            .kind = kind,
                                            .id = timer.causation_id,
                                            .recorded_at = timer.set_at,
                                            .correlation = timer.correlation_id,
                                            .causation_id = {},
                                            .metadata = timer.metadata,
                                            .published_before = {},
                                            .payload = {}});
}

}  // namespace

bool Feed::fire(Seat& seat, TimerClock& clock) {
  const Clock& time = store_.database().clock();
  const auto began = time.steady_now();
  while (true) {
    const Firing firing = fire_once(seat, clock);
    if (!seat.held) return false;
    const bool goes_on = firing.is_more && firing.fired > 0 && firing.position > 0;
    if (!goes_on || time.steady_now() - began > longest_turn) return firing.is_more;
  }
}

Feed::Firing Feed::fire_once(Seat& seat, TimerClock& clock) {
  Firing firing;
  seat.caught.clear();
  const auto error = error_of([&] {
    store_.transact(
        [&](Transaction& transaction) { fire_batch(seat, clock, transaction, firing); });
  });
  if (error) {
    stop(seat, *error);
    return {};
  }
  if (firing.broke_with) {
    store_.database().write([&](Connection& connection) {
      if (!renew(connection, seat.build, lease_until())) return;
      note_timer(seat, *firing.broke_with, connection, store_.database().now());
      log_timer(*firing.broke_with);
      if (firing.leaves) release(connection, seat.build);
    });
    firing.is_more = true;
    firing.position = 0;
  }
  settle_timers(seat, firing);
  return firing;
}

void Feed::fire_batch(Seat& seat, TimerClock& clock, Transaction& transaction, Firing& firing) {
  database::OpenTransaction& open = database::open_transaction(transaction);
  Connection& connection = open.connection();
  // Lock out appends, so that the timers' events directly follow the handled ones.
  open.lock();
  // Read the time before the head, so that events committed before that time are handled before the
  // timers.
  const auto now = clock.now(connection);
  if (!now) throw RollBack{};
  const std::int64_t head = head_of(connection);
  firing.is_more = true;
  if (!catch_up_inside(seat, transaction, head)) throw RollBack{};
  firing.lost = !advance(connection, seat.build, head, lease_until());
  if (firing.lost) throw RollBack{};
  firing.position = head;
  // Events recorded in response to these are also handled before timers.
  if (head_of(connection) > head) return;
  fire_timers(seat, *now, transaction, firing);
  if (firing.broke_with) throw RollBack{};
  if (firing.leaves) release(connection, seat.build);
  connection.run(
      sql::count_fired{.name = seat.build.name, .fired = firing.fired, .failed = firing.failed});
}

bool Feed::catch_up_inside(Seat& seat, Transaction& transaction, std::int64_t head) {
  const std::int64_t from = seat.build.position;
  if (head - from > events_before_timers) return false;
  if (head == from) return true;
  if (!reader_) reader_ = store_.database().make_event_reader();
  Connection& connection = database::open_transaction(transaction).connection();
  page_.clear();
  reader_->trim();
  reader_->fill(connection, from + 1, page_);
  // The page was too small, or an event fails: leave either to the next pass.
  if (page_.empty() || page_.events().back().sequence.value() < head) return false;
  const auto failure = react_to(seat, transaction, page_.events());
  if (failure && failure->blame == Blame::committed) {
    throw database::CommittedByCaller{failure->error};
  }
  return !failure;
}

void Feed::fire_timers(Seat& seat, Timestamp now, Transaction& transaction, Firing& firing) {
  Connection& connection = database::open_transaction(transaction).connection();
  const int most = timers_a_batch_;
  std::vector<Timer> timers = due_timers(connection, seat.build, now, most);
  // Timers beyond the time limit are read again, so read fewer from a slow server.
  timers_a_batch_ = least_timers_a_batch;
  const Clock& clock = store_.database().clock();
  const auto began = clock.steady_now();
  std::set<std::string_view> instances;
  for (Timer& timer : timers) {
    // The consequences of an instance's first timer are handled before its next timer, as are
    // events that others recorded for it.
    if (firing.must_end || !instances.insert(timer.key).second) return;
    if (firing.touched.contains(timer.key)) return;
    if (clock.steady_now() - began > longest_batch) return;
    const std::string known_error = timer.error;
    const Fired outcome = fire_one(seat, timer, now, transaction, firing);
    switch (outcome) {
      case Fired::fired:
        ++firing.fired;
        timers_a_batch_ = std::clamp(2 * static_cast<int>(firing.fired), least_timers_a_batch,
                                     most_timers_a_batch);
        break;
      case Fired::gone:
        break;
      case Fired::left:
      case Fired::postponed:
      case Fired::failed:
        firing.leaves = firing.leaves || outcome == Fired::left;
        if (!connection.in_transaction()) {
          firing.broke_with = std::move(timer);
          return;
        }
        firing.failed += outcome == Fired::failed ? 1 : 0;
        note_timer(seat, timer, connection, now);
        // A postponed timer is tried every second, so don't log it each time.
        if (outcome == Fired::failed || timer.error != known_error) log_timer(timer);
        if (timer.state == TimerState::parked) ++firing.parked;
    }
  }
  firing.is_more = firing.must_end || std::ssize(timers) == most;
}

Feed::Fired Feed::fire_one(Seat& seat, Timer& timer, Timestamp now, Transaction& transaction,
                           Firing& firing) {
  if (!seat.process->knows_timer(timer.kind, timer.version)) {
    timer.state = TimerState::unknown;
    timer.error = "this runner doesn't know " + timer.kind + " v" + std::to_string(timer.version) +
                  "; a runner of a newer release may";
    note_failure(database::open_transaction(transaction).connection(), timer, timer.state,
                 timer.wake_at);
    log_timer(timer);
    return Fired::gone;
  }
  database::FailureWatch watch{database::open_transaction(transaction).connection()};
  const database::Occupation occupation{seat.who};
  try {
    const Fired fired = fire_despite_conflicts(seat, timer, now, transaction, firing);
    follow::take_caught(watch, seat.caught,
                        [&] { return "timer " + timer.kind + " of '" + timer.key + "'"; });
    return fired;
  } catch (const KeyMissing&) {
    throw;  // as of an event
  } catch (...) {
    const follow::Fault fault = follow::current_fault(watch);
    timer.error = fault.what;
    if (fault.blame == Blame::nobody) return Fired::postponed;
    const auto wait = unknown_version_wait_.value_or(std::chrono::milliseconds{0});
    if (fault.blame == Blame::newer && now < timer.due_at + wait) {
      timer.error += waits_for_newer;
      return Fired::left;
    }
    // Also one of blame `committed`: the timer went with the handler's changes, so nothing is
    // repeated.
    ++timer.attempts;
    return Fired::failed;
  }
}

Feed::Fired Feed::fire_despite_conflicts(Seat& seat, const Timer& timer, Timestamp now,
                                         Transaction& transaction, Firing& firing) {
  for (int left = tries_of_conflicts;; --left) {
    try {
      return try_fire(seat, timer, now, transaction, firing);
    } catch (const ConcurrencyConflict&) {
      if (left == 1) throw;
    }
  }
}

Feed::Fired Feed::try_fire(Seat& seat, const Timer& timer, Timestamp now, Transaction& transaction,
                           Firing& firing) {
  bool is_gone = false;
  transaction.transact([&](Transaction& savepoint) {
    database::OpenTransaction& open = database::open_transaction(savepoint);
    const ContextScope scope = scope_of(timer);
    is_gone = !take(open.connection(), seat, timer, now);
    if (is_gone) return;
    UnitOfWork unit{savepoint};
    Process process =
        detail::ProcessAccess::make(unit, seat.registration.name, timer.key, timer.due_at,
                                    store_.conventions().reading(), seat.process->timer_kinds());
    detail::UnitAccess::lend(unit, true);
    seat.process->due(process,
                      {.kind = timer.kind, .version = timer.version, .payload = timer.payload});
    detail::UnitAccess::lend(unit, false);
    const bool leads_on = records_for(seat, unit);
    const AppendResult appended = unit.commit();
    if (leads_on) note_recorded(seat, open.connection(), appended, firing);
    apply_changes(open.connection(), seat, process, now);
    const auto changes = detail::ProcessAccess::changes(process);
    // A new timer that is already due must take its turn among the others.
    firing.must_end |= std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return change.due && *change.due <= now;
    });
    open.check_usable();
  });
  return is_gone ? Fired::gone : Fired::fired;
}

bool Feed::records_for(Seat& seat, UnitOfWork& unit) {
  bool handles_some = false;
  detail::UnitAccess::for_each_pending(unit, [&](const StoredEvent& event) {
    handles_some |= seat.process->handling(event.kind) != detail::Handling::skip;
  });
  return handles_some;
}

void Feed::note_recorded(Seat& seat, Connection& connection, const AppendResult& appended,
                         Firing& firing) {
  if (!reader_) reader_ = store_.database().make_event_reader();
  for (std::int64_t next = appended.first.value(); next > 0 && next <= appended.last.value();) {
    page_.clear();
    reader_->trim();
    reader_->fill(connection, next, page_);
    if (page_.empty()) return;
    for (const StoredEvent& event : page_.events()) {
      next = event.sequence.value() + 1;
      if (seat.process->handling(event.kind) == detail::Handling::skip) continue;
      if (auto instance = instance_of(seat, event)) {
        firing.touched.insert(*std::move(instance));
      } else {
        firing.must_end = true;
      }
    }
  }
}

void Feed::note_timer(Seat& seat, Timer& timer, Connection& connection, Timestamp now) {
  const ProjectorOptions& options = seat.registration.options;
  const bool is_last = timer.attempts >= options.max_attempts;
  const auto pause = timer.attempts > 0 ? backoff_of(options).after(timer.attempts) : least_pause;
  if (is_last) timer.state = TimerState::parked;
  note_failure(connection, timer, timer.state, now + pause);
}

void Feed::settle_timers(Seat& seat, const Firing& firing) {
  if (firing.lost) seat.held = false;
  if (firing.leaves) {
    seat.held = false;
    seat.build.owner.clear();
    seat.left_until = store_.database().now() + least_pause;
  }
  if (firing.position == 0) return;
  seat.build.position = firing.position;
  report_caught(store_, seat);
  counts_.timers_fired += firing.fired;
  counts_.timers_failed += firing.failed;
  counts_.timers_parked += firing.parked;
}

void Feed::log_timer(const Timer& timer) const {
  const std::string_view name = timer.state == TimerState::parked    ? "timer.parked"
                                : timer.state == TimerState::unknown ? "timer.unknown"
                                                                     : "timer.failed";
  const std::array fields{LogEntry::Field{"process", timer.process},
                          LogEntry::Field{"key", timer.key}, LogEntry::Field{"timer", timer.kind},
                          LogEntry::Field{"attempts", std::to_string(timer.attempts)}};
  store_.conventions().log->write(
      {.level = LogLevel::error, .name = name, .message = timer.error, .fields = fields});
}

}  // namespace stela::projections
