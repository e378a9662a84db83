#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/projections/replayer.hpp>

#include "build_tables.hpp"
#include "database/database.hpp"
#include "database/host.hpp"
#include "feed.hpp"
#include "follow/lease.hpp"
#include "groups.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/events.hpp"
#include "replay_filter.hpp"
#include "takeover.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stela {

using database::Connection;
using projections::Build;
using projections::Feed;
using projections::Seat;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds replay_lease{15};
/// How many events a replay may leave for a transaction that locks out appends.
constexpr std::int64_t last_stretch_of_replay = 1000;
/// A dry run reads this many events per statement, to keep read transactions short.
constexpr std::int64_t count_window = 65'536;

std::vector<const detail::Registration*> projectors_to_replay(
    const Projections& projections, const std::vector<std::string>& names) {
  std::vector<const detail::Registration*> chosen;
  const auto& all = projections.registrations();
  for (const detail::Registration& one : all) {
    if (names.empty() && one.kind != ProjectionKind::reaction) chosen.push_back(&one);
  }
  for (const std::string& name : names) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (known == all.end()) throw NotFound{"'" + name + "' isn't registered"};
    if (known->kind == ProjectionKind::reaction) {
      throw UsageError{"'" + name + "' is a reaction: what it recorded stands, and isn't replayed"};
    }
    if (std::find(chosen.begin(), chosen.end(), &*known) == chosen.end()) {
      chosen.push_back(&*known);
    }
  }
  return chosen;
}

/// Which of this process's versions to rebuild: the version of the living tables if appends
/// maintain them, otherwise the newest.
const detail::Registration* version_to_rebuild(Store& store, const detail::Registration& one) {
  const detail::Registration* const before = one.before.get();
  if (before == nullptr || one.kind != ProjectionKind::inline_) return &one;
  bool is_before = false;
  store.database().read([&](Connection& connection) {
    const auto builds = projections::read_builds(connection, one.name);
    const Build* const living = projections::find(builds, one.name, BuildState::living);
    is_before = living != nullptr && living->version == before->version;
  });
  return is_before ? before : &one;
}

/// One call of Replayer::run. Its destructor releases what it drives.
class Replay {
 public:
  Replay(Projections& projections, const ReplayOptions& options)
      : options_{options},
        is_rebuild_{options.filter.is_empty()},
        store_{projections.store()},
        worker_{host::make_worker_name()},
        sign_{store_, "projection.store_trouble", worker_},
        feed_{store_, replay_lease},
        filter_{projections::describe(options.filter)} {
    if (is_rebuild_ && options.into == ReplayInto::living) {
      throw UsageError{
          "a replay without a filter is a rebuild: it fills new tables, which take the place of "
          "the living ones"};
    }
    for (const detail::Registration* const chosen :
         projectors_to_replay(projections, options.projectors)) {
      const detail::Registration* const one = version_to_rebuild(store_, *chosen);
      if (options.into == ReplayInto::living && !one->is_idempotent) {
        throw UsageError{"projector '" + one->name +
                         "' doesn't say that it is idempotent, so its living tables would count "
                         "events twice; replay into scratch tables, or rebuild it"};
      }
      registrations_.push_back(one);
    }
  }
  ~Replay() {
    try {
      give_back();
    } catch (const std::exception&) {
      // The leases run out by themselves.
    }
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  ReplayResult run(const std::stop_token& stop) {
    end_ = std::min(options_.filter.to.value(), projections::last_sequence(store_));
    sign_.show();
    store_.database().write([&](Connection& connection) {
      for (const detail::Registration* const one : registrations_) begin(connection, *one);
    });
    started_ = steady_clock::now();
    started_at_ = position();
    while (!is_done() && !stop.stop_requested()) pass(stop);
    fail_if_stopped();
    if (is_rebuild_ && !stop.stop_requested()) take_over(stop);
    if (is_into_living() && !stop.stop_requested()) catch_up_with_appends(stop);
    ReplayResult result{.is_complete = !stop.stop_requested() || is_done(),
                        .was_resumed = was_resumed_};
    if (is_rebuild_ && !stop.stop_requested()) result.is_complete = true;
    if (is_rebuild_ && stop.stop_requested()) result.is_complete = false;
    for (const auto& seat : seats_) {
      result.models.push_back({seat->build.name,
                               seat->build.target != 0 ? seat->build.target : seat->build.number,
                               GlobalSequence{seat->build.position}});
    }
    return result;
  }

 private:
  follow::Term lease() const {
    return {worker_, replay_lease, store_.database().now(), sign_.number()};
  }

  /// Finds or creates the build to fill, and takes it.
  void begin(Connection& connection, const detail::Registration& registration) {
    const auto builds = projections::read_builds(connection, registration.name);
    const BuildState wanted = is_rebuild_ ? BuildState::building : BuildState::scratch;
    const Build* const there = projections::find(builds, registration.name, wanted);
    Build build;
    refuse_going_back(builds, registration);
    if (there != nullptr) refuse_if_driven(*there);
    if (there != nullptr && can_resume(*there, registration)) {
      build = *there;
      was_resumed_ = was_resumed_ || build.position > 0;
      connection.run(projections::sql::resume_stopped{.name = build.name, .build = build.number});
      build.stopped = false;
      build.failing = {};
    } else {
      if (there != nullptr) projections::drop(connection, *there);
      build = is_rebuild_ ? projections::begin_build(connection, store_, registration)
                          : begin_scratch(connection, registration, builds);
    }
    projections::seize(connection, build, lease());
    seats_.push_back(std::make_unique<Seat>(store_, registration, build));
    seats_.back()->held = true;
    if (build.target != 0) shut_out_runner(connection, builds, *seats_.back());
  }

  void refuse_going_back(const std::vector<Build>& builds,
                         const detail::Registration& registration) const {
    const Build* const living = projections::find(builds, registration.name, BuildState::living);
    if (!is_rebuild_ || living == nullptr || living->version <= registration.version) return;
    throw UsageError{living->describe() + " is in this database, and this process would rebuild v" +
                     std::to_string(registration.version) + "; rebuild it with the newer program"};
  }

  void refuse_if_driven(const Build& build) const {
    if (projections::is_free(build, store_.database().now(), store_.database())) return;
    throw UsageError{build.describe() +
                     (is_rebuild_ ? " is being rebuilt by " : " is being replayed by ") +
                     build.owner + "; wait for it, or stop that process"};
  }

  bool can_resume(const Build& build, const detail::Registration& registration) const {
    return !options_.restart && build.version == registration.version && build.filter == filter_ &&
           (is_rebuild_ ||
            (build.position < build.upto && (build.target != 0) == is_into_living()));
  }

  bool is_into_living() const { return options_.into == ReplayInto::living; }

  Build begin_scratch(Connection& connection, const detail::Registration& registration,
                      const std::vector<Build>& builds) const {
    const std::int64_t from = std::max<std::int64_t>(options_.filter.from.value(), 1);
    Build build{.name = registration.name,
                .version = registration.version,
                .kind = registration.kind,
                .state = BuildState::scratch,
                .position = std::min(from - 1, end_),
                .filter = filter_,
                .upto = end_};
    if (is_into_living()) {
      const Build* const living = projections::find(builds, registration.name, BuildState::living);
      if (living == nullptr || living->version != registration.version) {
        throw UsageError{"projector '" + registration.name +
                         "' has no living tables of this version; rebuild it"};
      }
      build.target = living->number;
    }
    projections::insert(connection, build, store_.database().now());
    if (build.target != 0) return build;
    Seat seat{store_, registration, build};
    projections::tables_of(connection).make(connection, build, *seat.projector, *seat.model);
    return build;
  }

  /// Only one may write the tables: the runner waits until the replay releases them.
  void shut_out_runner(Connection& connection, const std::vector<Build>& builds, Seat& seat) {
    Build& build = seat.build;
    const Build* const living = projections::find(builds, build.name, BuildState::living);
    if (living == nullptr || living->kind == ProjectionKind::inline_) return;
    seat.shut_out = *living;
    projections::seize(connection, *seat.shut_out, lease());
    extend(connection, build, *seat.shut_out);
  }

  /// Extends the replay to the living tables' position, so that older events don't have the last
  /// word. False if it already went that far.
  bool extend(Connection& connection, Build& build, const Build& living) const {
    const std::int64_t reached = std::min(options_.filter.to.value(), living.position);
    if (build.upto >= reached) return false;
    build.upto = reached;
    projections::set_upto(connection, build);
    return true;
  }

  std::int64_t end_of(const Seat& seat) const { return is_rebuild_ ? end_ : seat.build.upto; }

  bool is_done() const {
    return std::all_of(seats_.begin(), seats_.end(), [&](const auto& seat) {
      return seat->build.stopped || seat->build.position >= end_of(*seat);
    });
  }

  std::int64_t position() const {
    std::int64_t first = end_;
    for (const auto& seat : seats_) {
      if (!seat->build.stopped) first = std::min(first, seat->build.position);
    }
    return first;
  }

  AllQuery query() const {
    AllQuery query{.since = options_.filter.since, .until = options_.filter.until};
    query.streams = options_.filter.streams;
    query.categories = options_.filter.categories;
    query.event_types = options_.filter.event_types;
    return query;
  }

  void pass(const std::stop_token& stop) {
    std::vector<Seat*> behind;
    std::int64_t end = 0;
    for (const auto& seat : seats_) {
      if (seat->build.stopped || seat->build.position >= end_of(*seat)) continue;
      behind.push_back(seat.get());
      end = end_of(*seat);
    }
    const projections::Pass whole{
        .query = query(), .end = end, .pages = pages_a_pass, .decode_ahead = options_.decode_ahead};
    projections::feed_in_groups(store_, feed_, behind, whole, [&] {
      renew_leases();
      fail_if_lost();
      report();
      fail_if_short_of_memory();
      return !stop.stop_requested();
    });
  }

  void fail_if_lost() const {
    for (const auto& seat : seats_) {
      if (seat->held) continue;
      std::string text = seat->build.describe() + " was taken over by another process meanwhile";
      if (is_into_living()) text += what_stands(*seat) + ": run the same replay again";
      throw UsageError{text};
    }
  }

  /// Describes what committed batches have left in the living tables.
  static std::string what_stands(const Seat& seat) {
    return "; its living tables are replayed up to event " + std::to_string(seat.build.position) +
           " only";
  }

  /// Also for seats that don't move for a long time.
  void renew_leases() {
    const follow::Term mine = lease();
    if (!renewal_.is_due(mine.now)) return;
    sign_.show();
    store_.database().write(
        [&](Connection& connection) {
          for (const auto& seat : seats_) {
            if (seat->held) seat->held = renew(connection, *seat, mine.until());
          }
        },
        database::Sync::none);
    renewal_.note(mine.now);
  }

  static bool renew(Connection& connection, const Seat& seat, Timestamp until) {
    return (!seat.shut_out || projections::renew(connection, *seat.shut_out, until)) &&
           projections::renew(connection, seat.build, until);
  }

  void report() const {
    if (!options_.on_progress) return;
    ReplayProgress progress{.done = position() - started_at_, .total = end_ - started_at_};
    const std::chrono::duration<double> taken = steady_clock::now() - started_;
    if (progress.total > 0) {
      progress.percent =
          100.0 * static_cast<double>(progress.done) / static_cast<double>(progress.total);
    }
    if (taken.count() > 0 && progress.done > 0) {
      progress.events_per_second = static_cast<double>(progress.done) / taken.count();
      progress.time_left = std::chrono::seconds{static_cast<std::int64_t>(
          static_cast<double>(progress.total - progress.done) / progress.events_per_second)};
    }
    options_.on_progress(progress);
  }

  /// Its work is kept, and the next run continues from there.
  void fail_if_short_of_memory() const {
    const auto is_short = [](const auto& seat) { return seat->shortages > 0; };
    if (std::any_of(seats_.begin(), seats_.end(), is_short)) throw std::bad_alloc{};
  }

  void fail_if_stopped() const {
    for (const auto& seat : seats_) {
      if (!seat->build.stopped) continue;
      const bool is_unknown = seat->build.failing.has_no_attempt();
      throw UsageError{
          (is_rebuild_ ? "the rebuild of " : "the replay of ") + seat->build.describe() +
          " stopped at " + seat->build.failing.error +
          (is_into_living() ? what_stands(*seat) : "; the living tables are as they were") +
          (is_unknown ? "; run it in a release that does" : "; mend the handler and run it again")};
    }
  }

  void take_over(const std::stop_token& stop) {
    for (const auto& seat : seats_) {
      bool is_done = false;
      const auto try_it = [&] { is_done = projections::take_over(store_, feed_, *seat); };
      while (projections::past_readers(store_, try_it), !is_done) {
        // Many events were appended meanwhile.
        end_ = projections::last_sequence(store_);
        pass(stop);
        fail_if_stopped();
        if (stop.stop_requested()) return;
      }
    }
  }

  /// Appends drive the tables of inline projectors, and aren't locked out. Events that they
  /// projected meanwhile are projected again, the last ones in a transaction that locks appends
  /// out.
  void catch_up_with_appends(const std::stop_token& stop) {
    for (const auto& seat : seats_) {
      if (seat->shut_out) continue;
      while (!is_caught_up(*seat)) {
        pass(stop);
        fail_if_stopped();
        if (stop.stop_requested()) return;
      }
    }
  }

  bool is_caught_up(Seat& seat) {
    const Build before = seat.build;
    bool is_near = false;
    try {
      store_.database().write([&](Connection& connection) {
        seat.caught.clear();
        const auto builds = projections::read_builds(connection, before.name);
        const Build* const living = projections::find(builds, before.name, BuildState::living);
        if (living == nullptr || !extend(connection, seat.build, *living)) {
          is_near = true;
          return;
        }
        is_near = seat.build.upto - seat.build.position <= last_stretch_of_replay;
        if (!is_near) return;
        AllQuery rest = query();
        rest.to = GlobalSequence{seat.build.upto};
        projections::finish(connection, store_, feed_, seat, rest);
      });
    } catch (...) {
      seat.build = before;
      throw;
    }
    projections::report_caught(store_, seat);
    return is_near;
  }

  void give_back() {
    store_.database().write(
        [&](Connection& connection) {
          for (const auto& seat : seats_) {
            if (seat->held) projections::release(connection, seat->build);
            if (seat->shut_out) projections::release(connection, *seat->shut_out);
          }
        },
        database::Sync::none);
  }

  static constexpr int pages_a_pass = 1'000'000;

  const ReplayOptions& options_;
  const bool is_rebuild_;
  Store& store_;
  const std::string worker_;
  follow::Sign sign_;
  follow::Renewal renewal_{replay_lease};
  Feed feed_;
  const std::string filter_;
  std::vector<const detail::Registration*> registrations_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::int64_t end_ = 0;
  std::int64_t started_at_ = 0;
  steady_clock::time_point started_;
  bool was_resumed_ = false;
};

}  // namespace

bool ReplayFilter::is_empty() const noexcept {
  return streams.empty() && categories.empty() && event_types.empty() &&
         from <= GlobalSequence{1} && to == GlobalSequence::max() && !since && !until;
}

ReplayResult Replayer::run(const ReplayOptions& options, std::stop_token stop) {
  return Replay{projections_, options}.run(stop);
}

std::vector<EventTypeCount> Replayer::dry_run(const ReplayFilter& filter) {
  Store& store = projections_.store();
  std::map<std::string, std::int64_t> counts;
  const std::int64_t last = std::min(filter.to.value(), projections::last_sequence(store));
  const projections::FilterValues values{filter};
  for (std::int64_t from = std::max<std::int64_t>(filter.from.value(), 1); from <= last;
       from += count_window) {
    store.database().read([&](Connection& connection) {
      auto rows = connection.rows(
          projections::sql::count_types{.first = from,
                                        .last = std::min(last, from + count_window - 1),
                                        .categories = database::or_null(values.categories),
                                        .types = database::or_null(values.types),
                                        .streams = database::or_null(values.streams),
                                        .since = values.since,
                                        .until = values.until});
      while (rows.step()) counts[std::string{rows.type()}] += rows.events();
    });
  }
  std::vector<EventTypeCount> all;
  for (const auto& [type, events] : counts) all.push_back({type, events});
  return all;
}

}  // namespace stela
