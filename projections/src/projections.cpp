#include <stela/framework/error.hpp>
#include <stela/projections/detail/settings.hpp>
#include <stela/projections/projections.hpp>

#include "build_tables.hpp"
#include "database/commit_watch.hpp"
#include "database/database.hpp"
#include "inline_projector.hpp"
#include "progress.hpp"
#include "projections_sql.hpp"
#include "projections_sql/timers.hpp"
#include "takeover.hpp"
#include "timer_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace stela {

using database::Connection;
using projections::Build;

namespace {

void check(const ProjectorOptions& options) {
  check_ranges(projector_settings(), options);
  if (options.retry_backoff_max < options.retry_backoff) {
    throw UsageError{"retry_backoff is larger than retry_backoff_max"};
  }
}

/// An existing build of this name must have the same kind and must not be newer.
void check_known(const std::vector<Build>& builds, const detail::Registration& wanted) {
  for (const Build& build : builds) {
    if (build.state == BuildState::retired) continue;
    if (build.kind != wanted.kind) {
      throw UsageError{"'" + wanted.name + "' is in this database as " +
                       std::string{to_string(build.kind)} + ", and this process registers it as " +
                       std::string{to_string(wanted.kind)} +
                       "; give it another name, or remove it"};
    }
    if (build.state == BuildState::living && build.version > wanted.version) {
      throw UsageError{"the version went back: projector '" + wanted.name +
                       "' is in this database as version " + std::to_string(build.version) +
                       ", and this process brings version " + std::to_string(wanted.version)};
    }
  }
}

/// Null if the registration has no such version.
const detail::Registration* version_of(const detail::Registration& registration, int version) {
  if (version == registration.version) return &registration;
  const detail::Registration* const before = registration.before.get();
  return before != nullptr && version == before->version ? before : nullptr;
}

[[noreturn]] void refuse_reaction(const std::string& name) {
  throw UsageError{"'" + name +
                   "' is in this database as a process, and this process registers it as a "
                   "reaction, which would fire no timers; register it by add_process"};
}

/// Begins the first build of a projector, which readers see being filled.
void begin_living(Connection& connection, Store& store, const detail::Registration& registration) {
  const Build build = projections::begin_build(connection, store, registration);
  projections::put_in_place(connection, build, store.database().now());
}

}  // namespace

Projections::Projections(Store& store)
    : store_{store.anchor()}, progress_{std::make_unique<projections::Progress>()} {
  store.database().migrate("projections", projections::sql::migrations,
                           projections::sql::migrations_on_postgres);
}

Projections::Projections(Store& store, OnlyNoted) : store_{store.anchor()} {}

Projections::~Projections() = default;

void Projections::check_new(const detail::Registration& registration) const {
  for (const detail::Registration& known : registered_) {
    if (known.name != registration.name) continue;
    throw UsageError{"'" + registration.name +
                     "' is registered twice; give each projector its own name"};
  }
}

void Projections::add_async(detail::Registration registration, const ProjectorOptions& options) {
  check(options);
  check_new(registration);
  registration.kind = ProjectionKind::async;
  registration.options = options;
  if (registration.before) {
    registration.before->kind = ProjectionKind::async;
    registration.before->options = options;
  }
  if (only_notes()) return registered_.push_back(std::move(registration));
  store_.database().write([&](Connection& connection) {
    const auto builds = projections::read_builds(connection, registration.name);
    check_known(builds, registration);
    const Build* const living = projections::find(builds, registration.name, BuildState::living);
    if (living == nullptr) return begin_living(connection, store_, registration);
    const Build* const building =
        projections::find(builds, registration.name, BuildState::building);
    if (const detail::Registration* const known = version_of(registration, living->version)) {
      projections::require_same_statements(*living, *known);
    }
    if (living->version == registration.version) return;
    if (building != nullptr && building->version == registration.version &&
        projections::has_same_statements(*building, registration)) {
      return;
    }
    if (building != nullptr) projections::clear_way(connection, store_, *building);
    projections::begin_build(connection, store_, registration);
  });
  registered_.push_back(std::move(registration));
}

namespace {

/// Turns an existing reaction into the process; runners that drive it as a reaction lose it.
void register_process(Connection& connection, const Build* living, const std::string& name,
                      Timestamp now) {
  if (living != nullptr) projections::dispossess(connection, *living);
  connection.run(projections::sql::register_process{.name = name, .now = now});
  // Without timers, nothing can have fired already.
  auto timers = connection.rows(projections::sql::has_timers{});
  timers.step();
  const bool has_any = timers.has_any();
  timers.run();
  if (has_any) return;
  for (const projections::Hold& hold : projections::read_holds(connection)) {
    if (hold.reason == HoldReason::restored) projections::drop_hold(connection, hold.reason);
  }
}

}  // namespace

void Projections::attach_reaction(detail::Registration registration,
                                  const ReactionOptions& options) {
  check(options.handling);
  check_new(registration);
  registration.options = options.handling;
  if (only_notes()) return registered_.push_back(std::move(registration));
  store_.database().write([&](Connection& connection) {
    const auto builds = projections::read_builds(connection, registration.name);
    check_known(builds, registration);
    const Build* const living = projections::find(builds, registration.name, BuildState::living);
    const bool is_process = projections::process_names(connection).contains(registration.name);
    if (is_process && !registration.has_timers) refuse_reaction(registration.name);
    if (registration.has_timers && !is_process) {
      register_process(connection, living, registration.name, store_.database().now());
    }
    if (living != nullptr) return;
    Build build{
        .name = registration.name, .kind = ProjectionKind::reaction, .state = BuildState::living};
    if (options.start == ReactionStart::now) build.position = projections::last_sequence(store_);
    projections::insert(connection, build, store_.database().now());
  });
  registered_.push_back(std::move(registration));
}

void Projections::attach_inline(detail::Registration registration, const InlineOptions& options) {
  check_new(registration);
  registration.kind = ProjectionKind::inline_;
  if (registration.before) registration.before->kind = ProjectionKind::inline_;
  if (only_notes()) return registered_.push_back(std::move(registration));
  store_.database().read([&](Connection& connection) {
    check_known(projections::read_builds(connection, registration.name), registration);
  });
  inline_.push_back(std::make_unique<InlineProjector>(store_, registration, options));
  registered_.push_back(std::move(registration));
}

bool Projections::wait_for(std::string_view projector, GlobalSequence sequence,
                           std::chrono::milliseconds timeout) {
  using std::chrono::steady_clock;
  const auto watch = store_.database().watch_commits();
  const auto deadline = projections::deadline_of(timeout);
  // Moving a checkpoint commits no events, so it may not wake this wait.
  const auto longest_nap = std::chrono::milliseconds{watch->sees_all_commits() ? 50 : 1};
  for (;;) {
    std::vector<Build> builds;
    store_.database().read(
        [&](Connection& connection) { builds = projections::read_builds(connection); });
    const auto reached = projections::has_reached(builds, projector, sequence.value());
    if (reached) return *reached;
    const auto now = steady_clock::now();
    if (now >= deadline) return false;
    watch->wait_until(std::min(deadline, now + longest_nap));
  }
}

namespace projections {

std::optional<bool> has_reached(const std::vector<Build>& builds, std::string_view projector,
                                std::int64_t sequence) {
  const Build* const living = find(builds, projector, BuildState::living);
  if (living == nullptr) {
    throw UsageError{"this database has no projector '" + std::string{projector} + "'"};
  }
  if (living->position >= sequence) return true;
  return living->stopped ? std::optional{false} : std::nullopt;
}

std::chrono::steady_clock::time_point deadline_of(std::chrono::milliseconds timeout) {
  // Limits the wait, because the largest number of milliseconds overflows a clock.
  constexpr std::chrono::milliseconds longest_wait = std::chrono::hours{24 * 365 * 100};
  return std::chrono::steady_clock::now() +
         std::clamp(timeout, std::chrono::milliseconds{0}, longest_wait);
}

}  // namespace projections
}  // namespace stela
