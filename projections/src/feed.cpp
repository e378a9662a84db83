#include "feed.hpp"

#include "database/database.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"
#include "follow/blame.hpp"
#include "projections_sql/parked.hpp"

#include <stela/framework/decision.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace stela::projections {

using database::Connection;
using follow::Blame;
using follow::RollBack;

namespace {

constexpr std::string_view savepoint = "SAVEPOINT projector";
constexpr std::string_view roll_back_to_savepoint = "ROLLBACK TO projector";
constexpr std::string_view release_savepoint = "RELEASE projector";

/// A reaction's transaction syncs, and holds the lock while aggregates are loaded.
constexpr std::size_t reaction_batch = 64;

}  // namespace

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
  const auto error = error_of([&] {
    store_.database().write_apart(
        [&](Connection& connection) {
          for (std::size_t i = 0; i < seats.size(); ++i) {
            // A savepoint copies each changed page, which a single seat doesn't need.
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
        // Work lost in a power cut is projected again: rows and checkpoint are lost together.
        database::Sync::none);
  });
  if (error) {
    is_broken = !alone;
    outcomes.front().error = error;
  }
  // One seat ended the shared transaction, so each now runs alone.
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

std::optional<Failure> Feed::project_events(Connection& connection, Seat& seat,
                                            std::span<const StoredEvent> events) {
  std::optional<Failure> failure;
  const std::size_t caught_before = seat.caught.size();
  seat.model->attempt(connection, [&] {
    seat.caught.resize(caught_before);
    failure = attempt_events(connection, seat, events);
  });
  return failure;
}

std::optional<Failure> Feed::attempt_events(const Connection& connection, Seat& seat,
                                            std::span<const StoredEvent> events) {
  // A build that isn't living projects events that the living model has already seen.
  std::optional<ContextScope> replaying;
  if (seat.build.state != BuildState::living) replaying.emplace(Context{.is_replaying = true});
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
    } catch (const KeyMissing&) {
      throw;  // the key store is an older one: nothing is wrong with the event
    } catch (...) {
      const follow::Fault fault = follow::current_fault();
      const auto store_failure = seat.model->take_store_failure();
      if (store_failure && fault.blame != Blame::nobody) std::rethrow_exception(store_failure);
      return failure_at(event, fault);
    }
    if (auto store_failure = seat.model->take_store_failure()) {
      std::rethrow_exception(store_failure);
    }
    if (!connection.in_transaction()) {
      return Failure{
          event.sequence.value(),
          event.describe() + ": its handler ended the transaction that it was called in"};
    }
    follow::take_caught(watch, seat.caught, [&] { return event.describe(); });
  }
  return std::nullopt;
}

Feed::Outcome Feed::run_reaction(Seat& seat, const Batch& batch) {
  Outcome outcome;
  seat.caught.clear();
  const bool is_wanted =
      std::any_of(batch.events.begin(), batch.events.end(), [&](const StoredEvent& event) {
        return seat.handling(event.kind) != detail::Handling::skip;
      });
  if (!is_wanted) {
    store_.database().write_apart(
        [&](Connection& connection) {
          outcome.lost = !advance(connection, seat.build, batch.end, lease_until());
        },
        database::Sync::none);
    return outcome;
  }
  outcome.error = error_of([&] {
    store_.transact([&](Transaction& transaction) {
      outcome.failure = react_to(seat, transaction, batch.events);
      if (outcome.failure) throw RollBack{};
      Connection& connection = database::open_transaction(transaction).connection();
      outcome.lost = !advance(connection, seat.build, batch.end, lease_until());
      if (outcome.lost) throw RollBack{};
    });
  });
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

std::optional<Failure> Feed::react_to(Seat& seat, Transaction& transaction,
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
      Process process = detail::ProcessAccess::make(
          unit, seat.registration.name, event.stream.name(), event.recorded_at,
          store_.conventions().reading(), seat.process->timer_kinds());
      detail::UnitAccess::lend(unit, true);
      seat.process->react(process, event);
      detail::UnitAccess::lend(unit, false);
      unit.commit();
      apply_changes(open.connection(), seat, process, store_.database().now());
      open.check_usable();
      follow::take_caught(watch, seat.caught, [&] { return event.describe(); });
    } catch (const KeyMissing&) {
      throw;  // the key store is an older one: nothing is wrong with the event
    } catch (...) {
      Failure failure = failure_at(event, follow::current_fault(watch));
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
  if (outcome.error) return stop(seat, *outcome.error);
  if (!outcome.failure) {
    seat.build.position = batch.end;
    seat.build.failing = {};
    seat.build.resumes = false;
    seat.shortages = 0;
    ++counts_.commits;
    report_caught(store_, seat);
    return;
  }
  // The events before it succeeded: commit them, so that the failed event comes first.
  const std::int64_t before = outcome.failure->sequence - 1;
  if (before > seat.build.position) {
    const auto events = batch.events;
    const auto first = std::find_if(events.begin(), events.end(), [&](const StoredEvent& event) {
      return event.sequence.value() > before;
    });
    Batch prefix{batch.from, {events.begin(), first}, before};
    // The failed handler has committed them.
    if (outcome.failure->blame == Blame::committed) prefix.events = {};
    Seat* const one = &seat;
    const Outcome again =
        seat.projector ? run({&one, 1}, prefix).front() : run_reaction(seat, prefix);
    settle(seat, again, prefix);
    if (!again.is_good()) return;
  }
  failures_.note(seat, *outcome.failure);
}

void Feed::project_inside(Connection& connection, Seat& seat, const Batch& batch) {
  const Outcome outcome = handle(connection, seat, batch);
  if (outcome.lost) {
    throw LeaseLost{seat.build.describe() + " was taken over by another process meanwhile"};
  }
  if (!outcome.failure) return;
  const Failure& failure = *outcome.failure;
  if (failure.blame == Blame::nobody) throw std::bad_alloc{};
  if (failure.blame == Blame::newer) {
    throw VersionUnknown{seat.build.describe() + " stopped at " + failure.error};
  }
  throw UsageError{seat.build.describe() + " failed at " + failure.error};
}

void Feed::project_parked(Seat& seat, std::int64_t sequence, int attempts) {
  const GlobalSequence wanted{sequence};
  EventRange range = store_.read_at({&wanted, 1});
  const auto events = range.next_page();
  std::optional<Failure> failure;
  bool lost = false;
  seat.caught.clear();
  const auto settle_row = [&](Connection& connection) {
    lost = !renew(connection, seat.build, lease_until());
    if (lost) throw RollBack{};
    connection.run(
        sql::unpark{.name = seat.build.name, .build = seat.build.number, .sequence = sequence});
  };
  const auto error = error_of([&] {
    if (seat.projector) {
      store_.database().write_apart(
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
  });
  if (error) failure = Failure{sequence, *error};
  if (failure) return failures_.park_again(seat, *failure, attempts);
  if (lost) {
    seat.held = false;
    return;
  }
  ++counts_.commits;
  report_caught(store_, seat);
}

}  // namespace stela::projections
