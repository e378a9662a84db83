#include "takeover.hpp"

#include "database/database.hpp"
#include "sqlite/tables.hpp"

#include <stela/framework/error.hpp>

namespace stela::projections {

using database::Connection;

namespace {

/// How many events may be left for the transaction that takes over.
constexpr std::int64_t last_stretch = 1000;

}  // namespace

Build begin_build(Connection& connection, Store& store, const detail::Registration& registration) {
  Build build{.name = registration.name,
              .version = registration.version,
              .kind = registration.kind,
              .state = BuildState::building};
  insert(connection, build, store.database().now());
  Seat seat{store, registration, build};
  make_tables(connection, build, *seat.projector, *seat.model);
  return build;
}

void put_in_place(Connection& connection, const Build& build, Timestamp now) {
  const auto builds = read_builds(connection, build.name);
  if (const Build* const old = find(builds, build.name, BuildState::living)) {
    hide(connection, *old);
    set_state(connection, *old, BuildState::retired, now);
  }
  show(connection, build);
  set_state(connection, build, BuildState::living, now);
}

void clear_way(Connection& connection, const Build& building, Timestamp now) {
  if (!building.owner.empty() && building.lease_until > now) {
    throw UsageError{building.describe() + " is being built by " + building.owner +
                     "; wait for it, or stop that process"};
  }
  drop(connection, building);
}

bool is_near_the_end(Store& store, const Build& build) {
  return last_sequence(store) - build.position <= last_stretch;
}

void finish(Connection& connection, Store& store, Feed& feed, Seat& seat) {
  const Build before = seat.build;
  try {
    Scan scan{store, {.from = GlobalSequence{before.position + 1}, .to = store.last_sequence()}};
    while (!scan.is_done()) {
      const Batch batch = scan.next();
      feed.project_inside(connection, seat, batch);
      seat.build.position = batch.end;
    }
  } catch (...) {
    seat.build = before;
    throw;
  }
}

bool take_over(Store& store, Feed& feed, Seat& seat) {
  if (!is_near_the_end(store, seat.build)) return false;
  store.database().write([&](Connection& connection) {
    // Also when nothing is missing: it must still be ours.
    feed.project_inside(connection, seat, {seat.build.position, {}, seat.build.position});
    finish(connection, store, feed, seat);
    put_in_place(connection, seat.build, store.database().now());
  });
  seat.build.state = BuildState::living;
  return true;
}

int drop_retired(Store& store, Timestamp before) {
  std::vector<Build> old;
  const auto is_due = [&](const Build& build) {
    return build.state == BuildState::retired && build.changed_at <= before;
  };
  store.database().read([&](Connection& connection) {
    for (const Build& build : read_builds(connection)) {
      if (is_due(build)) old.push_back(build);
    }
  });
  for (const Build& build : old) {
    store.database().write([&](Connection& connection) { drop(connection, build); },
                           database::Sync::none);
  }
  return static_cast<int>(old.size());
}

}  // namespace stela::projections
