#include <stela/framework/error.hpp>
#include <stela/projections/operations.hpp>

#include "projections_sql.hpp"
#include "sqlite/builds.hpp"
#include "sqlite/core.hpp"
#include "sqlite/tables.hpp"
#include "takeover.hpp"

#include <algorithm>

namespace stela::projections {

using sqlite::Connection;
using sqlite::Query;

namespace {

bool has_projections(Connection& connection) {
  Query query = connection.query(sql::find_object);
  return query.bind(1, "projections").step();
}

[[noreturn]] void refuse(std::string_view projector, std::string_view why) {
  std::string text = "projector '";
  throw UsageError{text.append(projector).append("' ").append(why)};
}

/// Runs `work` on the builds of a projector, in a transaction.
void with_builds(sqlite::Store& store, std::string_view projector,
                 FunctionRef<void(Connection&, const std::vector<Build>&)> work) {
  store.core().writer().run_statements([&](Connection& connection) {
    std::vector<Build> builds;
    if (has_projections(connection)) builds = read_builds(connection, projector);
    if (builds.empty()) refuse(projector, "isn't in this database");
    work(connection, builds);
  });
}

const Build& living_of(const std::vector<Build>& builds, std::string_view projector) {
  const Build* const living = find(builds, projector, State::living);
  if (living == nullptr) refuse(projector, "has no living build");
  return *living;
}

bool changed(Connection& connection) {
  return sqlite3_changes(connection.handle()) > 0;
}

ProjectorStatus status_of(Connection& connection, const Build& build, std::int64_t last,
                          Timestamp now) {
  ProjectorStatus status{.name = build.name,
                         .build = build.number,
                         .version = build.version,
                         .kind = std::string{to_string(build.kind)},
                         .state = std::string{to_string(build.state)},
                         .position = GlobalSequence{build.position},
                         .owner = build.owner,
                         .lease_until = build.lease_until,
                         .failing = GlobalSequence{build.failing},
                         .error = build.error,
                         .attempts = build.attempts,
                         .next_attempt_at = build.next_attempt_at,
                         .halted = build.halted};
  {
    Query parked = connection.query(sql::count_parked);
    parked.bind(1, build.name).bind(2, build.number).step();
    status.parked = parked.integer(0);
    status.skipped = parked.integer(1);
  }
  if (build.state == State::retired) return status;
  status.lag_events = std::max<std::int64_t>(last - build.position, 0);
  Query waiting = connection.query(sql::recorded_at);
  if (waiting.bind(1, build.position + 1).step()) {
    const Timestamp since{std::chrono::microseconds{waiting.integer(0)}};
    status.lag = std::max(now - since, std::chrono::microseconds{0});
  }
  return status;
}

/// The build goes on behind the event that it fails at, and remembers it.
void skip_failing(Connection& connection, const Build& build, Timestamp now) {
  connection.query(sql::skip_failing)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, build.failing)
      .run();
  connection.query(sql::park)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, build.failing)
      .bind(4, "skipped")
      .bind(5, now.time_since_epoch().count())
      .bind(6, std::int64_t{build.attempts})
      .bind(7, build.error)
      .run();
}

}  // namespace

std::vector<ProjectorStatus> list(sqlite::Store& store) {
  std::vector<ProjectorStatus> all;
  store.core().reading().read([&](Connection& connection) {
    all.clear();
    if (!has_projections(connection)) return;
    const std::int64_t last =
        connection.integer("SELECT coalesce(max(sequence), 0) FROM events").value_or(0);
    for (const Build& build : read_builds(connection)) {
      all.push_back(status_of(connection, build, last, store.core().now()));
    }
  });
  return all;
}

std::vector<ParkedEvent> parked(sqlite::Store& store, std::string_view projector) {
  std::vector<ParkedEvent> all;
  store.core().reading().read([&](Connection& connection) {
    std::vector<Build> builds;
    if (has_projections(connection)) builds = read_builds(connection, projector);
    const Build& living = living_of(builds, projector);
    Query query = connection.query(sql::parked);
    query.bind(1, living.name).bind(2, living.number);
    while (query.step()) {
      all.push_back({.sequence = GlobalSequence{query.integer(0)},
                     .state = std::string{query.text(1)},
                     .parked_at = Timestamp{std::chrono::microseconds{query.integer(2)}},
                     .attempts = static_cast<int>(query.integer(3)),
                     .error = std::string{query.text(4)}});
    }
  });
  return all;
}

void retry(sqlite::Store& store, std::string_view projector) {
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    bool any = false;
    for (const Build& build : builds) {
      connection.query(sql::resume_halted).bind(1, build.name).bind(2, build.number).run();
      any = any || changed(connection);
    }
    if (!any) refuse(projector, "neither is halted nor waits to try an event again");
  });
}

void retry_parked(sqlite::Store& store, std::string_view projector, GlobalSequence sequence) {
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    const Build& living = living_of(builds, projector);
    connection.query(sql::want_again)
        .bind(1, living.name)
        .bind(2, living.number)
        .bind(3, sequence.value())
        .run();
    if (!changed(connection)) {
      refuse(projector, "hasn't parked event " + std::to_string(sequence.value()));
    }
  });
}

void skip(sqlite::Store& store, std::string_view projector, GlobalSequence sequence) {
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    const Build& living = living_of(builds, projector);
    connection.query(sql::drop_parked)
        .bind(1, living.name)
        .bind(2, living.number)
        .bind(3, sequence.value())
        .run();
    if (changed(connection)) return;
    bool any = false;
    for (const Build& build : builds) {
      if (sequence.value() == 0 || build.failing != sequence.value()) continue;
      skip_failing(connection, build, store.core().now());
      any = true;
    }
    if (!any) {
      refuse(projector, "doesn't fail at event " + std::to_string(sequence.value()) +
                            ", nor has it parked it");
    }
  });
}

void cancel_rebuild(sqlite::Store& store, std::string_view projector) {
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    const Build* const building = find(builds, projector, State::building);
    if (building == nullptr) refuse(projector, "isn't being rebuilt");
    drop(connection, *building);
  });
}

void drop_replay(sqlite::Store& store, std::string_view projector) {
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    const Build* const replayed = find(builds, projector, State::scratch);
    if (replayed == nullptr) refuse(projector, "has no replay");
    drop(connection, *replayed);
  });
}

void leave_behind(sqlite::Store& store, std::string_view projector) {
  with_builds(store, projector, [&](Connection&, const std::vector<Build>& builds) {
    if (living_of(builds, projector).kind != Kind::inline_) refuse(projector, "isn't inline");
  });
  store.forget_participant("projector:" + std::string{projector});
}

void remove(sqlite::Store& store, std::string_view projector) {
  // First, so that whatever comes between, appends go on and this can be done again.
  store.forget_participant("projector:" + std::string{projector});
  with_builds(store, projector, [&](Connection& connection, const std::vector<Build>& builds) {
    for (const Build& build : builds) {
      if (build.state == State::living) hide(connection, build);
      drop(connection, build);
    }
  });
}

}  // namespace stela::projections
