#include "failures.hpp"

#include "database/database.hpp"
#include "database/journal.hpp"
#include "database/transaction.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/parked.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

namespace stela::projections {

using database::Connection;
using follow::Blame;

namespace {

constexpr const char* unknown_here = ": the program that met it doesn't know its version";
constexpr const char* no_newer_came =
    "; no runner that knows it came in time; one that comes later continues by itself";

/// False if the build's position or owner has changed.
bool write(Connection& connection, const Build& build, const follow::Failing& failing,
           bool is_stopped, Timestamp now) {
  const bool is_ours = connection.run(sql::note_failure{.name = build.name,
                                                        .build = build.number,
                                                        .position = build.position,
                                                        .epoch = build.epoch,
                                                        .attempts = failing.attempts,
                                                        .next_attempt_at = failing.next_attempt_at,
                                                        .failing = failing.at,
                                                        .error = failing.error,
                                                        .stopped = is_stopped,
                                                        .resumes = build.resumes,
                                                        .now = now}) == 1;
  if (is_ours && is_stopped && !build.stopped && !build.resumes) {
    database::note(
        connection, now,
        {.part = "projections", .subject = build.name, .what = "stopped", .detail = failing.error});
  }
  return is_ours;
}

/// The build is free, but this runner doesn't take it again for the same event.
void give_up(Seat& seat) noexcept {
  seat.held = false;
  seat.build.owner.clear();
  seat.looked_at = seat.build.failing.at;
  seat.refuses = true;
}

}  // namespace

Failure unknown_at(const StoredEvent& event) {
  return {.sequence = event.sequence.value(),
          .error = event.describe() + unknown_here,
          .blame = Blame::newer};
}

Failure failure_at(const StoredEvent& event, const follow::Fault& fault) {
  const std::string which = event.describe();
  // Some errors name the event themselves.
  const bool is_named = fault.what.starts_with(which);
  return {.sequence = event.sequence.value(),
          .error = is_named ? fault.what : which + ": " + fault.what,
          .blame = fault.blame};
}

std::optional<std::string> error_of(FunctionRef<void()> transaction) {
  try {
    transaction();
    return std::nullopt;
  } catch (const follow::RollBack&) {
    return std::nullopt;
  } catch (const database::ForeignEvents& e) {
    return e.what();
  } catch (const database::CommittedByCaller& e) {
    return e.what();
  } catch (const ConstraintViolated& e) {
    // A deferred foreign key of another table may fail at the commit.
    return e.what();
  }
}

follow::Backoff backoff_of(const ProjectorOptions& options, bool is_counted) {
  const auto first =
      is_counted ? options.retry_backoff : std::max(options.retry_backoff, least_pause);
  return {first, std::max(first, options.retry_backoff_max)};
}

void Failures::note(Seat& seat, const Failure& failure) {
  if (failure.blame == Blame::newer && unknown_version_wait_) return note_unknown(seat, failure);
  note_counted(seat, failure);
}

void Failures::note_counted(Seat& seat, const Failure& failure) {
  const ProjectorOptions& options = seat.registration.options;
  Build& build = seat.build;
  const int attempts =
      build.failing.attempts_at(failure.sequence) + (follow::is_counted(failure.blame) ? 1 : 0);
  const bool is_shortage = failure.blame == Blame::nobody;
  seat.shortages = is_shortage ? seat.shortages + 1 : 0;
  // A rebuild or a replay stops at once, because the living model remains in service.
  const int most = build.state == BuildState::living ? options.max_attempts : 0;
  const bool is_last = follow::is_final(failure.blame, attempts, most);
  const bool parks =
      is_last && options.on_error == OnError::park && build.state == BuildState::living;
  // Leave the build free for a runner that knows the version.
  const bool is_let_go =
      is_last && !parks && failure.blame == Blame::newer && unknown_version_wait_;
  const Timestamp next =
      store_.database().now() +
      backoff_of(options, !is_shortage).after(is_shortage ? seat.shortages : attempts);
  const follow::Failing failing{failure.sequence, attempts, next, failure.error};
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        if (parks) {
          lost =
              !advance(connection, build, failure.sequence, store_.database().now() + lease_ttl_);
          if (lost) return;
          return park(connection, build, failure, attempts);
        }
        lost = !write(connection, build, failing, is_last, store_.database().now());
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
    build.failing = {};
    ++counts_.parked;
    return log(seat, failure, "projection.parked");
  }
  build.failing = failing;
  build.stopped = is_last;
  if (is_last) ++counts_.stopped;
  if (is_let_go) give_up(seat);
  log(seat, failure, is_last ? "projection.stopped" : "projection.failed");
}

void Failures::note_unknown(Seat& seat, Failure failure) {
  const Build& build = seat.build;
  if (build.resumes) return keep_stopped(seat);
  const Timestamp now = store_.database().now();
  const std::string waiting = failure.error + waits_for_newer;
  // The first runner that met it has set the deadline, unless an operator has asked for a retry.
  const bool was_left = build.failing.at == failure.sequence && build.failing.error == waiting &&
                        build.failing.next_attempt_at != Timestamp{};
  const Timestamp until = was_left ? build.failing.next_attempt_at : now + *unknown_version_wait_;
  if (now < until) {
    failure.error = waiting;
    return leave_to_newer(seat, failure, until);
  }
  failure.error += no_newer_came;
  note_counted(seat, failure);
}

void Failures::keep_stopped(Seat& seat) {
  store_.database().write([&](Connection& connection) { release(connection, seat.build); },
                          database::Sync::none);
  seat.build.stopped = true;
  seat.build.resumes = false;
  give_up(seat);
}

void Failures::leave_to_newer(Seat& seat, const Failure& failure, Timestamp until) {
  Build& build = seat.build;
  const follow::Failing failing{failure.sequence, 0, until, failure.error};
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        lost = !write(connection, build, failing, false, store_.database().now());
        release(connection, build);
      },
      database::Sync::none);
  seat.held = false;
  if (lost) return;
  build.failing = failing;
  give_up(seat);
  ++counts_.left_to_newer;
  log(seat, failure, "projection.left_to_newer", LogLevel::warning);
}

void Failures::stop(Seat& seat, const std::string& error) {
  const follow::Failing failing{.error = error};
  store_.database().write(
      [&](Connection& connection) {
        write(connection, seat.build, failing, true, store_.database().now());
      },
      database::Sync::none);
  seat.build.stopped = true;
  seat.build.resumes = false;
  seat.build.failing = failing;
  ++counts_.stopped;
  log(seat, {0, error}, "projection.stopped");
}

void Failures::park_again(Seat& seat, const Failure& failure, int attempts) {
  bool lost = false;
  store_.database().write(
      [&](Connection& connection) {
        lost = !renew(connection, seat.build, store_.database().now() + lease_ttl_);
        if (lost) return;
        // An operator asked for this attempt, so it counts even if memory was short.
        park(connection, seat.build, failure, attempts + (failure.blame == Blame::newer ? 0 : 1));
      },
      database::Sync::none);
  if (lost) {
    seat.held = false;
    return;
  }
  ++counts_.failed;
  log(seat, failure, "projection.parked");
}

void Failures::park(Connection& connection, const Build& build, const Failure& failure,
                    int attempts) const {
  connection.run(sql::park{.name = build.name,
                           .build = build.number,
                           .sequence = failure.sequence,
                           .state = to_string(ParkedEventState::parked),
                           .parked_at = store_.database().now(),
                           .attempts = attempts,
                           .error = failure.error,
                           .instance = failure.instance});
}

void Failures::log(const Seat& seat, const Failure& failure, std::string_view name,
                   LogLevel level) const {
  const std::array fields{LogEntry::Field{"projector", seat.build.name},
                          LogEntry::Field{"version", std::to_string(seat.build.version)},
                          LogEntry::Field{"sequence", std::to_string(failure.sequence)},
                          LogEntry::Field{"attempts", std::to_string(seat.build.failing.attempts)}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = failure.error, .fields = fields});
}

}  // namespace stela::projections
