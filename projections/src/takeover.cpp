#include "takeover.hpp"

#include "build_tables.hpp"
#include "database/database.hpp"

#include <stela/framework/detail/backoff.hpp>
#include <stela/framework/error.hpp>

#include <chrono>
#include <thread>

namespace stela::projections {

using database::Connection;

namespace {

/// How many events may be left for the transaction that takes over.
constexpr std::int64_t last_stretch = 1000;
constexpr std::chrono::seconds longest_in_the_way{10};
constexpr std::chrono::milliseconds first_pause_for_readers{25};
constexpr std::chrono::milliseconds longest_pause_for_readers{800};

}  // namespace

Build begin_build(Connection& connection, Store& store, const detail::Registration& registration) {
  Build build{.name = registration.name,
              .version = registration.version,
              .kind = registration.kind,
              .state = BuildState::building};
  insert(connection, build, store.database().now());
  Seat seat{store, registration, build};
  tables_of(connection).make(connection, build, *seat.projector, *seat.model);
  note_statements(connection, build, seat.model->created().checksum());
  return build;
}

bool has_same_statements(const Build& build, const detail::Registration& registration) {
  if (build.upto == 0) return true;
  const auto checksum = checksum_of_create(*registration.make_projector());
  return !checksum || *checksum == build.upto;
}

void require_same_statements(const Build& build, const detail::Registration& registration) {
  if (has_same_statements(build, registration)) return;
  throw UsageError{
      build.describe() +
      " makes its tables by other statements than those that made "
      "its tables in this database: `create` was changed, and the version wasn't; give "
      "it version " +
      std::to_string(build.version + 1) +
      ", and new tables are filled beside these and take their place"};
}

void put_in_place(Connection& connection, const Build& build, Timestamp now) {
  const auto builds = read_builds(connection, build.name);
  const Tables& tables = tables_of(connection);
  // An existing view is only redirected, and keeps its readers' rights.
  tables.show(connection, build);
  if (const Build* const old = find(builds, build.name, BuildState::living)) {
    // It is already living if another process was faster.
    if (old->number != build.number) tables.hide(connection, *old);
    set_state(connection, *old, BuildState::retired, now);
    if (old->number != build.number) {
      database::note(
          connection, now,
          database::StateChange{.part = "projections",
                                .subject = build.name,
                                .what = "rebuilt",
                                .detail = "version " + std::to_string(old->version) +
                                          " gave way to version " + std::to_string(build.version)});
    }
  }
  set_state(connection, build, BuildState::living, now);
}

void clear_way(Connection& connection, Store& store, const Build& building) {
  if (!is_free(building, store.database().now(), store.database())) {
    throw UsageError{building.describe() + " is being built by " + building.owner +
                     "; wait for it, or stop that process"};
  }
  drop(connection, building);
}

bool is_near_the_end(Store& store, const Build& build) {
  return last_sequence(store) - build.position <= last_stretch;
}

void finish(Connection& connection, Store& store, Feed& feed, Seat& seat, AllQuery query) {
  query.from = GlobalSequence{seat.build.position + 1};
  Scan scan{store, query};
  while (!scan.is_done()) {
    const Batch batch = scan.next();
    feed.project_inside(connection, seat, batch);
    seat.build.position = batch.end;
  }
}

void past_readers(Store& store, FunctionRef<void()> part) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + longest_in_the_way;
  for (int attempt = 1;; ++attempt) {
    try {
      return part();
    } catch (const LeaseLost&) {
      throw;
    } catch (const StoreBusy&) {
      if (!store.database().is_shared() || steady_clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(
        doubled(first_pause_for_readers, longest_pause_for_readers, attempt));
  }
}

bool take_over(Store& store, Feed& feed, Seat& seat) {
  if (!is_near_the_end(store, seat.build)) return false;
  const Build before = seat.build;
  try {
    store.database().write([&](Connection& connection) {
      seat.caught.clear();
      // Check the lease even when nothing is missing.
      feed.project_inside(connection, seat, {before.position, {}, before.position});
      finish(connection, store, feed, seat, {.to = store.last_sequence()});
      put_in_place(connection, seat.build, store.database().now());
    });
  } catch (...) {
    seat.build = before;
    throw;
  }
  seat.build.state = BuildState::living;
  report_caught(store, seat);
  return true;
}

int drop_retired(Store& store, Timestamp before) {
  std::vector<Build> old;
  const auto is_due = [&](const Build& build) {
    return build.state == BuildState::retired && build.changed_at <= before;
  };
  store.database().read([&](Connection& connection) {
    for (const Build& build : read_builds(connection)) {
      // Leave others to processes that may drop them.
      if (is_due(build) && tables_of(connection).may_drop(connection, build)) old.push_back(build);
    }
  });
  int dropped = 0;
  for (const Build& build : old) {
    try {
      store.database().write([&](Connection& connection) { drop(connection, build); },
                             database::Sync::none);
      ++dropped;
    } catch (const StoreBusy&) {
      // A reader still uses them; try again the next time.
      if (!store.database().is_shared()) throw;
    }
  }
  return dropped;
}

}  // namespace stela::projections
