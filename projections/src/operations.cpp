#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/projections/operations.hpp>

#include "build_tables.hpp"
#include "builds.hpp"
#include "database/database.hpp"
#include "database/host.hpp"
#include "database/journal.hpp"
#include "database/stored_enum.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/events.hpp"
#include "projections_sql/parked.hpp"
#include "takeover.hpp"
#include "timer_rows.hpp"

#include <tuple>

namespace stela {

namespace sql = projections::sql;
using database::Connection;
using projections::Build;

namespace {

[[noreturn]] void refuse_missing(std::string_view projector, std::string_view what) {
  std::string text = "projector '";
  throw NotFound{text.append(projector).append("' ").append(what)};
}

[[noreturn]] void refuse(std::string_view projector, std::string_view why) {
  std::string text = "projector '";
  throw UsageError{text.append(projector).append("' ").append(why)};
}

database::StateChange change_of(std::string_view projector, std::string_view what,
                                std::string_view who, std::string_view detail = {}) {
  return {.part = "projections", .subject = projector, .what = what, .who = who, .detail = detail};
}

std::string event_in_words(GlobalSequence sequence) {
  return "event " + std::to_string(sequence.value());
}

/// Runs an operator's change of a projector's builds in a transaction, and records it.
void with_builds(Store& store, const database::StateChange& change,
                 FunctionRef<void(Connection&, const std::vector<Build>&)> work) {
  const std::string_view projector = change.subject;
  store.database().write([&](Connection& connection) {
    std::vector<Build> builds;
    if (projections::has_tables(connection))
      builds = projections::read_builds(connection, projector);
    if (builds.empty()) refuse_missing(projector, "isn't in this database");
    work(connection, builds);
    database::note(connection, store.database().now(), change);
  });
}

const Build& living_of(const std::vector<Build>& builds, std::string_view projector) {
  const Build* const living = projections::find(builds, projector, BuildState::living);
  if (living == nullptr) refuse(projector, "has no living build");
  return *living;
}

ProjectorStatus status_of(Connection& connection, const Build& build, std::int64_t last,
                          Timestamp now) {
  ProjectorStatus status{.name = build.name,
                         .build = build.number,
                         .version = build.version,
                         .kind = build.kind,
                         .state = build.state,
                         .position = GlobalSequence{build.position},
                         .owner = build.owner,
                         .lease_until = build.lease.until,
                         .failing = GlobalSequence{build.failing.at},
                         .failing_since = build.failing_since,
                         .error = build.failing.error,
                         .attempts = build.failing.attempts,
                         .next_attempt_at = build.failing.next_attempt_at,
                         .stopped = build.stopped,
                         .stopped_at = build.stopped_at};
  {
    auto count = connection.rows(sql::count_parked{.name = build.name, .build = build.number});
    count.step();
    status.parked = count.parked();
    status.skipped = count.skipped();
  }
  if (build.state == BuildState::retired) return status;
  std::tie(status.lag_events, status.lag) = projections::lag_of(connection, build, last, now);
  return status;
}

ParkedEvent parked_event(const auto& row) {
  return {.sequence = GlobalSequence{row.sequence()},
          .type = std::string{row.type()},
          .state = database::parse_stored(
              {ParkedEventState::parked, ParkedEventState::retry, ParkedEventState::skipped},
              row.state()),
          .parked_at = row.parked_at(),
          .attempts = static_cast<int>(row.attempts()),
          .error = std::string{row.error()}};
}

/// The build continues after the failing event, and remembers it as skipped.
void skip_failing(Connection& connection, const Build& build, Timestamp now) {
  connection.run(
      sql::skip_failing{.name = build.name, .build = build.number, .failing = build.failing.at});
  connection.run(sql::park{.name = build.name,
                           .build = build.number,
                           .sequence = build.failing.at,
                           .state = to_string(ParkedEventState::skipped),
                           .parked_at = now,
                           .attempts = build.failing.attempts,
                           .error = build.failing.error,
                           .instance = std::nullopt});
}

}  // namespace

ProjectionOperations::ProjectionOperations(Store& store, std::string who)
    : store_{store.anchor()}, who_{who.empty() ? host::user() : std::move(who)} {}

std::vector<ProjectorStatus> ProjectionOperations::status() {
  std::vector<ProjectorStatus> all;
  const std::int64_t last = store_.last_sequence().value();
  store_.database().read([&](Connection& connection) {
    all.clear();
    if (!projections::has_tables(connection)) return;
    for (const Build& build : projections::list_builds(connection)) {
      all.push_back(status_of(connection, build, last, store_.database().now()));
    }
  });
  return all;
}

std::vector<ParkedEvent> ProjectionOperations::parked(std::string_view projector,
                                                      const ParkedEventQuery& query) {
  if (query.limit < 1) throw UsageError{"limit must be 1 or more"};
  std::vector<ParkedEvent> all;
  store_.database().read([&](Connection& connection) {
    std::vector<Build> builds;
    if (projections::has_tables(connection))
      builds = projections::read_builds(connection, projector);
    const Build& living = living_of(builds, projector);
    all.clear();
    const auto walk = [&](const auto& statement) {
      auto rows = connection.rows(statement);
      while (rows.step()) all.push_back(parked_event(rows));
    };
    if (query.direction == Direction::forward) {
      return walk(sql::parked{.name = living.name,
                              .build = living.number,
                              .after = query.after.value(),
                              .most = query.limit});
    }
    const bool is_first = query.after == GlobalSequence{};
    walk(sql::parked_back{.name = living.name,
                          .build = living.number,
                          .before = (is_first ? GlobalSequence::max() : query.after).value(),
                          .most = query.limit});
  });
  return all;
}

void ProjectionOperations::retry(std::string_view projector) {
  with_builds(store_, change_of(projector, "retried", who_),
              [&](Connection& connection, const std::vector<Build>& builds) {
                bool any = false;
                for (const Build& build : builds) {
                  const sql::resume_stopped resume{.name = build.name, .build = build.number};
                  any = connection.run(resume) > 0 || any;
                }
                if (!any) refuse(projector, "neither is stopped nor waits to try an event again");
              });
}

void ProjectionOperations::retry(std::string_view projector, GlobalSequence sequence) {
  const std::string event = event_in_words(sequence);
  with_builds(store_, change_of(projector, "retried", who_, event),
              [&](Connection& connection, const std::vector<Build>& builds) {
                const Build& living = living_of(builds, projector);
                const sql::want_again again{
                    .name = living.name, .build = living.number, .sequence = sequence.value()};
                if (connection.run(again) == 0) {
                  refuse_missing(projector,
                                 "hasn't parked event " + std::to_string(sequence.value()));
                }
              });
}

void ProjectionOperations::skip(std::string_view projector, GlobalSequence sequence) {
  const std::string event = event_in_words(sequence);
  with_builds(store_, change_of(projector, "skipped", who_, event),
              [&](Connection& connection, const std::vector<Build>& builds) {
                const Build& living = living_of(builds, projector);
                const sql::drop_parked parked{
                    .name = living.name, .build = living.number, .sequence = sequence.value()};
                if (connection.run(parked) > 0) return;
                bool any = false;
                for (const Build& build : builds) {
                  if (sequence.value() == 0 || build.failing.at != sequence.value()) continue;
                  skip_failing(connection, build, store_.database().now());
                  any = true;
                }
                if (!any) {
                  refuse(projector, "doesn't fail at event " + std::to_string(sequence.value()) +
                                        ", nor has it parked it");
                }
              });
}

void ProjectionOperations::cancel_rebuild(std::string_view projector) {
  with_builds(store_, change_of(projector, "rebuild cancelled", who_),
              [&](Connection& connection, const std::vector<Build>& builds) {
                const Build* const building =
                    projections::find(builds, projector, BuildState::building);
                if (building == nullptr) refuse(projector, "isn't being rebuilt");
                projections::drop(connection, *building);
              });
}

void ProjectionOperations::drop_replay(std::string_view projector) {
  with_builds(store_, change_of(projector, "replay dropped", who_),
              [&](Connection& connection, const std::vector<Build>& builds) {
                const Build* const replayed =
                    projections::find(builds, projector, BuildState::scratch);
                if (replayed == nullptr) refuse(projector, "has no replay");
                projections::drop(connection, *replayed);
              });
}

void ProjectionOperations::leave_behind(std::string_view projector) {
  with_builds(store_, change_of(projector, "left behind", who_),
              [&](Connection&, const std::vector<Build>& builds) {
                if (living_of(builds, projector).kind != ProjectionKind::inline_)
                  refuse(projector, "isn't inline");
              });
  store_.forget_participant("projector:" + std::string{projector});
}

void ProjectionOperations::remove(std::string_view projector) {
  // Do this first: then appends continue and the removal can be repeated, whatever fails.
  store_.forget_participant("projector:" + std::string{projector});
  with_builds(store_, change_of(projector, "removed", who_),
              [&](Connection& connection, const std::vector<Build>& builds) {
                for (const Build& build : builds) {
                  if (build.state == BuildState::living)
                    projections::tables_of(connection).hide(connection, build);
                  projections::drop(connection, build);
                }
                projections::forget_process(connection, projector);
              });
}

}  // namespace stela
