#include "inline_projector.hpp"

#include "build_tables.hpp"
#include "database/database.hpp"
#include "database/failure_watch.hpp"
#include "database/host.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"
#include "projections_sql/builds.hpp"
#include "takeover.hpp"

#include <stela/framework/error.hpp>

#include <string>
#include <utility>

namespace stela {

using database::Connection;
using projections::Build;
using projections::Scan;
using projections::Seat;

namespace {

constexpr std::chrono::seconds inline_lease{15};
/// A process that stops renewing its lease counts as gone when the lease has run out.
constexpr std::chrono::seconds patience = 2 * inline_lease;
constexpr std::chrono::milliseconds longest_nap{20};

std::string detail_of(const detail::Registration& registration) {
  return "v" + std::to_string(registration.version);
}

}  // namespace

Projections::InlineProjector::InlineProjector(Store& store,
                                              const detail::Registration& registration,
                                              const InlineOptions& options)
    : store_{store},
      registration_{registration},
      name_{"projector:" + registration.name},
      detail_{detail_of(registration)},
      detail_before_{registration.before ? detail_of(*registration.before) : std::string{}},
      feed_{store, inline_lease} {
  store_.database().write([&](Connection& connection) {
    store_.database().refuse_second(name_);
    choose_build(connection, options.rebuild);
  });
  while (!catch_up()) {
    wait_for_other();
    store_.database().write(
        [&](Connection& connection) { choose_again(connection, options.rebuild); });
  }
  const Build before = seat_->build;
  projections::past_readers(store_, [&] {
    seat_->build = before;
    seat_->caught.clear();
    store_.database().attach(*this, [&](Connection& connection) { prepare(connection); });
  });
  projections::report_caught(store_, *seat_);
}

Projections::InlineProjector::~InlineProjector() {
  store_.detach(*this);
}

const detail::Registration* Projections::InlineProjector::find_version(int version) const noexcept {
  if (version == registration_.version) return &registration_;
  const detail::Registration* const before = registration_.before.get();
  return before != nullptr && version == before->version ? before : nullptr;
}

void Projections::InlineProjector::choose_build(Connection& connection, bool rebuild) {
  const auto builds = projections::read_builds(connection, registration_.name);
  const Build* const living = projections::find(builds, registration_.name, BuildState::living);
  const Build* const building = projections::find(builds, registration_.name, BuildState::building);
  const detail::Registration* const known =
      living != nullptr ? find_version(living->version) : nullptr;
  const detail::Registration* const before = registration_.before.get();
  if (before != nullptr && living != nullptr && living->version < before->version) {
    throw UsageError{"the database has version " + std::to_string(living->version) + " of '" +
                     registration_.name + "', and this release rolls out version " +
                     std::to_string(registration_.version) + " beside version " +
                     std::to_string(before->version) +
                     ": finish the roll-out of that one first, by add_inline"};
  }
  Build chosen;
  if (known != nullptr && !rebuild) {
    const std::string problem =
        projections::tables_of(connection).find_alteration(connection, *living);
    if (!problem.empty()) {
      throw SchemaMismatch{problem + ": register it with the option rebuild"};
    }
    projections::require_same_statements(*living, *known);
    chosen = *living;
  } else if (building != nullptr && building->version == registration_.version &&
             projections::has_same_statements(*building, registration_)) {
    chosen = *building;
  } else {
    if (building != nullptr) projections::clear_way(connection, store_, *building);
    chosen = projections::begin_build(connection, store_, registration_);
  }
  seat_ = std::make_unique<Seat>(store_, *find_version(chosen.version), chosen);
}

bool Projections::InlineProjector::is_free(const Build& build) const {
  return projections::is_free(build, store_.database().now(), store_.database());
}

bool Projections::InlineProjector::catch_up() {
  if (projections::is_near_the_end(store_, seat_->build)) return true;
  const std::string worker = host::make_worker_name();
  store_.database().write([&](Connection& connection) {
    const follow::Term lease{worker, inline_lease, store_.database().now()};
    seat_->held = is_free(seat_->build) && projections::acquire(connection, seat_->build, lease);
  });
  if (!seat_->held) return false;
  try {
    project_missing();
    return true;
  } catch (const projections::LeaseLost&) {
    return false;
  } catch (...) {
    let_go();
    throw;
  }
}

void Projections::InlineProjector::project_missing() {
  while (!projections::is_near_the_end(store_, seat_->build)) {
    Scan scan{store_,
              {.from = GlobalSequence{seat_->build.position + 1}, .to = store_.last_sequence()}};
    while (!scan.is_done()) {
      const projections::Batch batch = scan.next();
      const std::int64_t at = seat_->build.position;
      store_.database().write(
          [&](Connection& connection) {
            seat_->caught.clear();
            // Check the lease first: rows of another process would look like a failure of the
            // projector.
            feed_.project_inside(connection, *seat_, {at, {}, at});
            feed_.project_inside(connection, *seat_, batch);
          },
          database::Sync::none);
      projections::report_caught(store_, *seat_);
      seat_->build.position = batch.end;
    }
  }
}

void Projections::InlineProjector::let_go() noexcept {
  try {
    store_.database().write(
        [&](Connection& connection) { projections::release(connection, seat_->build); });
  } catch (...) {
    // Others wait until the lease runs out.
  }
}

std::optional<Build> Projections::InlineProjector::read_build() {
  std::optional<Build> read;
  store_.database().read([&](Connection& connection) {
    for (Build& build : projections::read_builds(connection, registration_.name)) {
      if (build.number == seat_->build.number) read = std::move(build);
    }
  });
  return read;
}

void Projections::InlineProjector::wait_for_other() {
  const Clock& clock = store_.database().clock();
  const auto watch = store_.database().watch_commits();
  Timestamp lease_until = {};
  auto deadline = clock.steady_now() + patience;
  for (;;) {
    const std::optional<Build> build = read_build();
    if (!build || build->state != seat_->build.state || is_free(*build) ||
        projections::is_near_the_end(store_, *build)) {
      return;
    }
    if (build->lease.until != lease_until) deadline = clock.steady_now() + patience;
    lease_until = build->lease.until;
    if (clock.steady_now() >= deadline) {
      throw StoreBusy{build->describe() + " is being caught up by " + build->owner +
                      ", which makes no progress; stop that process, or try again"};
    }
    watch->wait_until(std::chrono::steady_clock::now() + longest_nap);
  }
}

void Projections::InlineProjector::choose_again(Connection& connection, bool rebuild) {
  const auto builds = projections::read_builds(connection, registration_.name);
  const Build* const living = projections::find(builds, registration_.name, BuildState::living);
  // The rebuild that it waited for.
  const bool is_rebuilt = living != nullptr && living->number == seat_->build.number;
  choose_build(connection, rebuild && !is_rebuilt);
}

void Projections::InlineProjector::prepare(Connection& connection) {
  // Appends are locked out, so nothing can come between the missing events.
  const follow::Term lease{name_, inline_lease, store_.database().now()};
  projections::seize(connection, seat_->build, lease);
  projections::finish(connection, store_, feed_, *seat_, {.to = store_.last_sequence()});
  projections::release(connection, seat_->build);
  if (seat_->build.state != BuildState::building) return;
  projections::put_in_place(connection, seat_->build, store_.database().now());
  // From here on, appends with an older version are refused.
  connection.run(projections::sql::forget_participant{.name = name_});
  seat_->build.state = BuildState::living;
}

bool Projections::InlineProjector::advance(Connection& connection, std::int64_t from,
                                           std::int64_t to) {
  return connection.run(projections::sql::advance_inline{.name = seat_->build.name,
                                                         .build = seat_->build.number,
                                                         .from_position = from,
                                                         .to_position = to}) == 1;
}

void Projections::InlineProjector::switch_build(Connection& connection, std::int64_t position) {
  const auto builds = projections::read_builds(connection, registration_.name);
  const Build* const living = projections::find(builds, registration_.name, BuildState::living);
  if (living == nullptr || living->position != position) {
    throw ParticipantMissing{
        "inline projector '" + registration_.name + "' is at event " +
        std::to_string(living != nullptr ? living->position : 0) + ", and events up to " +
        std::to_string(position) +
        " were appended without it; nothing was written; open the store again and register it: "
        "that catches up"};
  }
  const detail::Registration* const known = find_version(living->version);
  if (known == nullptr) {
    throw ParticipantMissing{"this database has version " + std::to_string(living->version) +
                             " of inline projector '" + registration_.name +
                             "', and this process has version " +
                             std::to_string(registration_.version) + "; nothing was written"};
  }
  seat_ = std::make_unique<Seat>(store_, *known, *living);
}

void Projections::InlineProjector::on_append(Transaction& transaction,
                                             std::span<const StoredEvent> events) {
  Connection& connection = database::open_transaction(transaction).connection();
  const std::int64_t before = events.front().sequence.value() - 1;
  const std::int64_t last = events.back().sequence.value();
  if (!advance(connection, before, last)) {
    // Another process may have rebuilt it.
    switch_build(connection, before);
    advance(connection, before, last);
  }
  const database::Occupation occupation{seat_->who};
  seat_->model->attempt(connection, [&] { project(connection, events); });
  // There is no call after the commit, so report now.
  projections::report_caught(store_, *seat_);
}

void Projections::InlineProjector::project(Connection& connection,
                                           std::span<const StoredEvent> events) {
  seat_->caught.clear();
  database::FailureWatch watch{connection};
  for (const StoredEvent& event : events) {
    const detail::Handling handling = seat_->projector->handling(event.kind);
    if (handling == detail::Handling::skip) continue;
    if (handling == detail::Handling::refuse) detail::throw_unknown(event);
    seat_->projector->project(*seat_->model, event);
    if (auto failure = seat_->model->take_store_failure()) std::rethrow_exception(failure);
    if (!connection.in_transaction()) {
      throw UsageError{registration_.name +
                       ": a handler ended the transaction of the append that called it"};
    }
    follow::take_caught(watch, seat_->caught, [&] { return event.describe(); });
  }
}

void Projections::InlineProjector::forget() noexcept {
  // The failure was rolled back with the transaction that it occurred in.
  (void)seat_->model->take_store_failure();
}

}  // namespace stela
