#include "feed.hpp"

#include "database/database.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"
#include "handler_failure.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/parked.hpp"

#include <stela/framework/backoff.hpp>
#include <stela/framework/decision.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace stela::projections {

using database::Connection;

namespace {

constexpr std::string_view savepoint = "SAVEPOINT projector";
constexpr std::string_view roll_back_to_savepoint = "ROLLBACK TO projector";
constexpr std::string_view release_savepoint = "RELEASE projector";

constexpr const char* broken_key = "a deferred FOREIGN KEY constraint fails when its handler ends";

constexpr const char* unknown_here = ": the program that met it doesn't know its version";
constexpr const char* waits_for_newer = "; it waits for a runner that knows it";
constexpr const char* no_newer_came =
    "; no runner that knows it came in time; one that comes goes on by itself";

/// A reaction's transaction syncs, and holds the lock while aggregates are loaded.
constexpr std::size_t reaction_batch = 64;

/// The build is free, and this runner isn't to take it for the event that it is at.
void give_up(Seat& seat) noexcept {
  seat.held = false;
  seat.build.owner.clear();
  seat.looked_at = seat.build.failing;
  seat.refuses = true;
}

}  // namespace

Seat::Seat(Store& store, const detail::Registration& the_registration, const Build& the_build)
    : registration{the_registration}, build{the_build}, who{the_build.describe()} {
  if (registration.make_process) {
    process = registration.make_process();
    return;
  }
  projector = registration.make_projector();
  model = make_model(store, build);
}

void report_caught(Store& store, Seat& seat) {
  // What logs them may append, which calls the handlers again.
  const std::vector<CaughtStatement> caught = std::exchange(seat.caught, {});
  for (const CaughtStatement& each : caught) {
    const std::array fields{LogEntry::Field{"projector", seat.build.name},
                            LogEntry::Field{"version", std::to_string(seat.build.version)},
                            LogEntry::Field{"problem", each.error}};
    const std::string message =
        each.where + ": its handler went on after a statement had failed: " + each.error;
    store.conventions().log->write({.level = LogLevel::warning,
                                    .name = "projection.statement_failed",
                                    .message = message,
                                    .fields = fields});
    store.conventions().metrics->count("stela_handler_failed_statements_total", 1,
                                       {{"handler", seat.build.name}});
  }
}

Timestamp Feed::lease_until() const {
  return store_.database().now() + lease_ttl_;
}

void Feed::project(std::span<Seat* const> seats, const Batch& batch) {
  counts_.scanned += static_cast<std::int64_t>(batch.events.size());
  std::vector<Seat*> together;
  for (Seat* const seat : seats) {
    if (!seat->held || seat->build.position != batch.from) continue;
    if (seat->projector) {
      together.push_back(seat);
    } else {
      react(*seat, batch);
    }
  }
  if (together.empty()) return;
  const std::vector<Outcome> outcomes = run(together, batch);
  for (std::size_t i = 0; i < together.size(); ++i) settle(*together[i], outcomes[i], batch);
}

void Feed::react(Seat& seat, const Batch& batch) {
  Batch piece{batch.from, {}, batch.from};
  for (auto left = batch.events; piece.end < batch.end && seat.build.position == piece.end;) {
    piece = {piece.end, left.first(std::min(left.size(), reaction_batch)), batch.end};
    left = left.subspan(piece.events.size());
    if (!left.empty()) piece.end = piece.events.back().sequence.value();
    settle(seat, run_reaction(seat, piece), piece);
  }
}

std::vector<Feed::Outcome> Feed::run(std::span<Seat* const> seats, const Batch& batch) {
  std::vector<Outcome> outcomes(seats.size());
  const bool alone = seats.size() == 1;
  bool is_broken = false;
  try {
    store_.database().write(
        [&](Connection& connection) {
          for (std::size_t i = 0; i < seats.size(); ++i) {
            // A savepoint copies each page that is changed: not for one that has it all.
            if (!alone) connection.run(savepoint);
            seats[i]->caught.clear();
            outcomes[i] = handle(connection, *seats[i], batch);
            if (alone && !outcomes[i].is_good()) throw RollBack{};
            if (alone) continue;
            is_broken = !connection.in_transaction();
            if (is_broken) throw RollBack{};
            if (!outcomes[i].is_good()) connection.run(roll_back_to_savepoint);
            connection.run(release_savepoint);
          }
        },
        // What a power cut takes away is projected again: rows and checkpoint go together.
        database::Sync::none);
  } catch (const RollBack&) {
  }
  // One of them ended everybody's transaction: each by itself, then.
  for (std::size_t i = 0; is_broken && i < seats.size(); ++i) {
    outcomes[i] = run(seats.subspan(i, 1), batch).front();
  }
  return outcomes;
}

Feed::Outcome Feed::handle(Connection& connection, Seat& seat, const Batch& batch) {
  const database::Occupation occupation{seat.who};
  if (auto failure = project_events(connection, seat, batch.events)) return {std::move(failure)};
  return {.lost = !move(connection, seat, batch.end)};
}

bool Feed::move(Connection& connection, const Seat& seat, std::int64_t position) const {
  const Timestamp until = lease_until();
  if (seat.shut_out && !renew(connection, *seat.shut_out, until)) return false;
  return advance(connection, seat.build, position, until);
}

/// If memory is short for this, too, it isn't the handler's shortage alone.
Feed::Failure Feed::shortage_at(const StoredEvent& event) {
  return {event.sequence.value(), event.describe() + ": there isn't enough memory for it", true};
}

Feed::Failure Feed::unknown_at(const StoredEvent& event) {
  Failure failure{event.sequence.value(), event.describe() + unknown_here};
  failure.is_unknown = true;
  return failure;
}

Feed::Failure Feed::failure_at(const StoredEvent& event) {
  const std::exception_ptr error = std::current_exception();
  Failure failure{event.sequence.value(), event.describe() + ": " + text_of(error)};
  try {
    throw;
  } catch (const UnknownEvent&) {
    failure.is_unknown = true;
  } catch (...) {
  }
  return failure;
}

std::optional<Feed::Failure> Feed::project_events(Connection& connection, Seat& seat,
                                                  std::span<const StoredEvent> events) {
  std::optional<Failure> failure;
  const std::size_t caught_before = seat.caught.size();
  seat.model->attempt(connection, [&] {
    seat.caught.resize(caught_before);
    failure = attempt_events(connection, seat, events);
  });
  return failure;
}

std::optional<Feed::Failure> Feed::attempt_events(const Connection& connection, Seat& seat,
                                                  std::span<const StoredEvent> events) {
  // What the living model has seen before is seen again.
  std::optional<ContextScope> replaying;
  if (seat.build.state != BuildState::living) replaying.emplace(Context{.is_replaying = true});
  const StoredEvent* suspect = nullptr;
  database::FailureWatch watch{connection};
  for (const StoredEvent& event : events) {
    try {
      const detail::Handling handling = seat.projector->handling(event.kind);
      if (handling == detail::Handling::skip) continue;
      if (handling == detail::Handling::refuse) return unknown_at(event);
      if (seat.decoded) {
        seat.projector->project(*seat.model, event, *seat.decoded);
      } else {
        seat.projector->project(*seat.model, event);
      }
    } catch (const std::bad_alloc&) {
      seat.model->take_store_failure();
      return shortage_at(event);
    } catch (...) {
      if (auto store_failure = seat.model->take_store_failure()) {
        std::rethrow_exception(store_failure);
      }
      return failure_at(event);
    }
    if (auto store_failure = seat.model->take_store_failure()) {
      std::rethrow_exception(store_failure);
    }
    if (!connection.in_transaction()) {
      return Failure{
          event.sequence.value(),
          event.describe() + ": its handler ended the transaction that it was called in"};
    }
    if (std::string refusal = watch.take_refusal(); !refusal.empty()) {
      seat.caught.push_back({event.describe(), std::move(refusal)});
    }
    if (!seat.model->breaks_deferred_key(connection)) {
      suspect = nullptr;
    } else if (suspect == nullptr) {
      suspect = &event;
    }
    // Of an inline projector, the events of one append may mend each other's.
    if (suspect != nullptr && seat.build.kind != ProjectionKind::inline_) break;
  }
  if (suspect == nullptr) return std::nullopt;
  return Failure{suspect->sequence.value(), suspect->describe() + ": " + broken_key};
}

Feed::Outcome Feed::run_reaction(Seat& seat, const Batch& batch) {
  Outcome outcome;
  seat.caught.clear();
  const bool is_wanted =
      std::any_of(batch.events.begin(), batch.events.end(), [&](const StoredEvent& event) {
        return seat.handling(event.kind) != detail::Handling::skip;
      });
  try {
    if (!is_wanted) {
      store_.database().write(
          [&](Connection& connection) {
            outcome.lost = !advance(connection, seat.build, batch.end, lease_until());
          },
          database::Sync::none);
      return outcome;
    }
    store_.transact([&](Transaction& transaction) {
      outcome.failure = react_to(seat, transaction, batch.events);
      if (outcome.failure) throw RollBack{};
      Connection& connection = database::open_transaction(transaction).connection();
      outcome.lost = !advance(connection, seat.build, batch.end, lease_until());
      if (outcome.lost) throw RollBack{};
    });
  } catch (const RollBack&) {
  }
  return outcome;
}

std::optional<std::string> Feed::instance_of(Seat& seat, const StoredEvent& event) {
  try {
    std::string key = seat.process->key_of(event);
    detail::ProcessAccess::check_key(key);
    return key;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Feed::Failure> Feed::react_to(Seat& seat, Transaction& transaction,
                                            std::span<const StoredEvent> events) {
  database::OpenTransaction& open = database::open_transaction(transaction);
  const database::Occupation occupation{seat.who};
  for (const StoredEvent& event : events) {
    database::FailureWatch watch{open.connection()};
    try {
      const detail::Handling handling = seat.process->handling(event.kind);
      if (handling == detail::Handling::skip) continue;
      if (handling == detail::Handling::refuse) return unknown_at(event);
      const ContextScope scope = ContextScope::handling(event);
      UnitOfWork unit{transaction};
      Process process =
          detail::ProcessAccess::make(unit, event.stream.name(), event.recorded_at,
                                      store_.conventions().codec, seat.process->timer_kinds());
      detail::UnitAccess::lend(unit, true);
      seat.process->react(process, event);
      detail::UnitAccess::lend(unit, false);
      unit.commit();
      apply_changes(open.connection(), seat, process, store_.database().now());
      open.check_deferred_keys();
      if (std::string refusal = watch.take_refusal(); !refusal.empty()) {
        seat.caught.push_back({event.describe(), std::move(refusal)});
      }
    } catch (const std::bad_alloc&) {
      return shortage_at(event);
    } catch (const ParticipantMissing&) {
      throw;
    } catch (...) {
      watch.rethrow_failure();
      Failure failure = failure_at(event);
      failure.instance = instance_of(seat, event);
      return failure;
    }
  }
  return std::nullopt;
}

void Feed::settle(Seat& seat, const Outcome& outcome, const Batch& batch) {
  if (outcome.lost) {
    seat.held = false;
    return;
  }
  if (!outcome.failure) {
    seat.build.position = batch.end;
    seat.build.attempts = 0;
    seat.build.failing = 0;
    seat.build.resumes = false;
    seat.shortages = 0;
    ++counts_.commits;
    report_caught(store_, seat);
    return;
  }
  // What came before it is good: it is committed, and the event stands first from now on.
  const std::int64_t before = outcome.failure->sequence - 1;
  if (before > seat.build.position) {
    const auto events = batch.events;
    const auto first = std::find_if(events.begin(), events.end(), [&](const StoredEvent& event) {
      return event.sequence.value() > before;
    });
    const Batch prefix{batch.from, {events.begin(), first}, before};
    Seat* const one = &seat;
    const Outcome again =
        seat.projector ? run({&one, 1}, prefix).front() : run_reaction(seat, prefix);
    settle(seat, again, prefix);
    if (!again.is_good()) return;
  }
  if (outcome.failure->is_unknown && unknown_version_wait_)
    return note_unknown(seat, *outcome.failure);
  note(seat, *outcome.failure);
}

Timestamp Feed::next_attempt(const Seat& seat, const Failure& failure, int attempts) const {
  const ProjectorOptions& options = seat.registration.options;
  // Without an end of the attempts there must be a pause.
  constexpr std::chrono::milliseconds least_pause{1'000};
  const int failures = failure.is_shortage ? seat.shortages : attempts;
  const auto first =
      failure.is_shortage ? std::max(options.retry_backoff, least_pause) : options.retry_backoff;
  const auto longest = std::max(first, options.retry_backoff_max);
  return store_.database().now() + doubled(first, longest, failures);
}

void Feed::note(Seat& seat, const Failure& failure) {
  const ProjectorOptions& options = seat.registration.options;
  Build& build = seat.build;
  const int before = build.failing == failure.sequence ? build.attempts : 0;
  const int attempts = before + (failure.is_shortage || failure.is_unknown ? 0 : 1);
  seat.shortages = failure.is_shortage ? seat.shortages + 1 : 0;
  // A rebuild or a replay stops at once: the living model serves on.
  const bool is_last =
      !failure.is_shortage &&
      (failure.is_unknown || attempts >= options.max_attempts || build.state != BuildState::living);
  const bool parks =
      is_last && options.on_error == OnError::park && build.state == BuildState::living;
  // Not kept from a runner that knows the version.
  const bool is_let_go = is_last && !parks && failure.is_unknown && unknown_version_wait_;
  const Timestamp next = next_attempt(seat, failure, attempts);
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        if (parks) {
          lost = !advance(connection, build, failure.sequence, lease_until());
          if (lost) return;
          connection.run(sql::park{.name = build.name,
                                   .build = build.number,
                                   .sequence = failure.sequence,
                                   .state = to_string(ParkedEventState::parked),
                                   .parked_at = store_.database().now(),
                                   .attempts = attempts,
                                   .error = failure.error,
                                   .instance = failure.instance});
          return;
        }
        lost = connection.run(sql::note_failure{.name = build.name,
                                                .build = build.number,
                                                .position = build.position,
                                                .epoch = build.epoch,
                                                .attempts = attempts,
                                                .next_attempt_at = next,
                                                .failing = failure.sequence,
                                                .error = failure.error,
                                                .halted = is_last,
                                                .resumes = build.resumes}) != 1;
        if (is_let_go) release(connection, build);
      },
      database::Sync::none);
  if (lost) {
    seat.held = false;
    return;
  }
  ++counts_.failed;
  build.resumes = false;
  if (parks) {
    build.position = failure.sequence;
    build.attempts = 0;
    build.failing = 0;
    ++counts_.parked;
    return log_failure(seat, failure, "projection.parked");
  }
  build.attempts = attempts;
  build.failing = failure.sequence;
  build.error = failure.error;
  build.next_attempt_at = next;
  build.halted = is_last;
  if (is_last) ++counts_.halted;
  if (is_let_go) give_up(seat);
  log_failure(seat, failure, is_last ? "projection.halted" : "projection.failed");
}

void Feed::note_unknown(Seat& seat, Failure failure) {
  const Build& build = seat.build;
  if (build.resumes) return keep_halted(seat);
  const Timestamp now = store_.database().now();
  const std::string waiting = failure.error + waits_for_newer;
  // Who met it first has set the end of the time, unless an operator said to try again.
  const bool was_left = build.failing == failure.sequence && build.error == waiting &&
                        build.next_attempt_at != Timestamp{};
  const Timestamp until = was_left ? build.next_attempt_at : now + *unknown_version_wait_;
  if (now < until) {
    failure.error = waiting;
    return leave_to_newer(seat, failure, until);
  }
  failure.error += no_newer_came;
  note(seat, failure);
}

void Feed::keep_halted(Seat& seat) {
  store_.database().write([&](Connection& connection) { release(connection, seat.build); },
                          database::Sync::none);
  seat.build.halted = true;
  seat.build.resumes = false;
  give_up(seat);
}

void Feed::leave_to_newer(Seat& seat, const Failure& failure, Timestamp until) {
  Build& build = seat.build;
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        lost = connection.run(sql::note_failure{.name = build.name,
                                                .build = build.number,
                                                .position = build.position,
                                                .epoch = build.epoch,
                                                .attempts = 0,
                                                .next_attempt_at = until,
                                                .failing = failure.sequence,
                                                .error = failure.error,
                                                .halted = false,
                                                .resumes = false}) != 1;
        release(connection, build);
      },
      database::Sync::none);
  seat.held = false;
  if (lost) return;
  build.attempts = 0;
  build.failing = failure.sequence;
  build.error = failure.error;
  build.next_attempt_at = until;
  give_up(seat);
  ++counts_.left_to_newer;
  log_failure(seat, failure, "projection.left_to_newer", LogLevel::warning);
}

void Feed::halt(Seat& seat, const std::string& error) {
  store_.database().write(
      [&](Connection& connection) {
        connection.run(sql::note_failure{.name = seat.build.name,
                                         .build = seat.build.number,
                                         .position = seat.build.position,
                                         .epoch = seat.build.epoch,
                                         .attempts = 0,
                                         .next_attempt_at = Timestamp{},
                                         .failing = 0,
                                         .error = error,
                                         .halted = true,
                                         .resumes = seat.build.resumes});
      },
      database::Sync::none);
  seat.build.halted = true;
  seat.build.resumes = false;
  seat.build.error = error;
  ++counts_.halted;
  log_failure(seat, {0, error}, "projection.halted");
}

void Feed::project_inside(Connection& connection, Seat& seat, const Batch& batch) {
  const Outcome outcome = handle(connection, seat, batch);
  if (outcome.lost) {
    throw LeaseLost{seat.build.describe() + " was taken over by another process meanwhile"};
  }
  if (outcome.failure && outcome.failure->is_shortage) throw std::bad_alloc{};
  if (outcome.failure && outcome.failure->is_unknown) {
    throw VersionUnknown{seat.build.describe() + " stopped at " + outcome.failure->error};
  }
  if (outcome.failure)
    throw UsageError{seat.build.describe() + " failed at " + outcome.failure->error};
}

void Feed::project_parked(Seat& seat, std::int64_t sequence, int attempts) {
  const GlobalSequence wanted{sequence};
  EventRange range = store_.read_at({&wanted, 1});
  const auto events = range.next_page();
  std::optional<Failure> failure;
  seat.caught.clear();
  const auto settle_row = [&](Connection& connection) {
    if (!renew(connection, seat.build, lease_until())) throw RollBack{};
    connection.run(
        sql::unpark{.name = seat.build.name, .build = seat.build.number, .sequence = sequence});
  };
  try {
    if (seat.projector) {
      store_.database().write(
          [&](Connection& connection) {
            const database::Occupation occupation{seat.who};
            failure = project_events(connection, seat, events);
            if (failure) throw RollBack{};
            settle_row(connection);
          },
          database::Sync::none);
    } else {
      store_.transact([&](Transaction& transaction) {
        failure = react_to(seat, transaction, events);
        if (failure) throw RollBack{};
        settle_row(database::open_transaction(transaction).connection());
      });
    }
    ++counts_.commits;
    report_caught(store_, seat);
  } catch (const RollBack&) {
    if (!failure) seat.held = false;
  }
  if (!failure) return;
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        lost = !renew(connection, seat.build, lease_until());
        if (lost) return;
        connection.run(sql::park{.name = seat.build.name,
                                 .build = seat.build.number,
                                 .sequence = sequence,
                                 .state = to_string(ParkedEventState::parked),
                                 .parked_at = store_.database().now(),
                                 .attempts = attempts + (failure->is_unknown ? 0 : 1),
                                 .error = failure->error,
                                 .instance = failure->instance});
      },
      database::Sync::none);
  if (lost) {
    seat.held = false;
    return;
  }
  ++counts_.failed;
  log_failure(seat, *failure, "projection.parked");
}

void Feed::log_failure(const Seat& seat, const Failure& failure, std::string_view name,
                       LogLevel level) const {
  const std::array fields{LogEntry::Field{"projector", seat.build.name},
                          LogEntry::Field{"version", std::to_string(seat.build.version)},
                          LogEntry::Field{"sequence", std::to_string(failure.sequence)},
                          LogEntry::Field{"attempts", std::to_string(seat.build.attempts)}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = failure.error, .fields = fields});
}

}  // namespace stela::projections
