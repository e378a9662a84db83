#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/projections/detail/settings.hpp>
#include <stela/projections/runner.hpp>

#include "build_tables.hpp"
#include "database/commit_watch.hpp"
#include "database/database.hpp"
#include "database/host.hpp"
#include "database/journal.hpp"
#include "feed.hpp"
#include "follow/lease.hpp"
#include "follow/trouble.hpp"
#include "groups.hpp"
#include "progress.hpp"
#include "projections_sql/parked.hpp"
#include "takeover.hpp"
#include "timer_clock.hpp"
#include "timer_rows.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <set>
#include <utility>

namespace stela {

using database::Connection;
using projections::Build;
using projections::Feed;
using projections::FeedCounts;
using projections::Seat;
using std::chrono::steady_clock;

namespace {

/// How many pages a group of projectors gets before others get their turn.
constexpr int pages_a_turn = 16;

/// The registrations that a runner drives: the named ones, or all that aren't inline.
std::vector<const detail::Registration*> projectors_to_run(const Projections& projections,
                                                           const std::vector<std::string>& names) {
  std::vector<const detail::Registration*> chosen;
  for (const detail::Registration& one : projections.registrations()) {
    const bool is_named = std::find(names.begin(), names.end(), one.name) != names.end();
    if (is_named && one.kind == ProjectionKind::inline_) {
      throw UsageError{"'" + one.name + "' is inline: appends drive it, no runner does"};
    }
    if (is_named || (names.empty() && one.kind != ProjectionKind::inline_)) chosen.push_back(&one);
  }
  for (const std::string& name : names) {
    const bool is_known = std::any_of(chosen.begin(), chosen.end(),
                                      [&](const auto* one) { return one->name == name; });
    if (!is_known) throw NotFound{"'" + name + "' isn't registered"};
  }
  return chosen;
}

}  // namespace

/// Threads: one at a time.
class Runner::Driver {
 public:
  Driver(Projections& projections, const RunnerOptions& options)
      : options_{options},
        worker_{options.worker.empty() ? host::make_worker_name() : options.worker},
        store_{projections.store()},
        progress_{projections.progress()},
        feed_{store_, options.lease_ttl, options.unknown_version_wait},
        timer_clock_{store_, options.clock_jump_limit},
        watch_{store_.database().watch_commits()},
        sign_{store_, "projection.store_trouble", worker_},
        renewal_{options.lease_ttl} {
    check_ranges(runner_settings(), options);
    for (const detail::Registration* one : projectors_to_run(projections, options.projectors)) {
      registrations_.push_back(*one);
      if (one->before) registrations_.push_back(*one->before);
    }
  }

  ~Driver() {
    try {
      // Release what an error left in our hands.
      give_back();
    } catch (const std::exception&) {
      // The leases run out by themselves.
    }
  }

  RunnerTick run_once() {
    refresh();
    while (pass({})) refresh();
    RunnerTick tick = report();
    give_back();
    return tick;
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake{stop, [this] { watch_->wake(); }};
    auto reported = steady_clock::now();
    bool was_in_trouble = false;
    while (!stop.stop_requested()) {
      bool moved = false;
      const bool went_well = try_to([&] {
        refresh();
        moved = pass(stop);
      });
      if (went_well && was_in_trouble) troubles_.forget();
      was_in_trouble = !went_well;
      const auto now = steady_clock::now();
      if (moved || now >= reported + options_.idle_backoff) {
        const RunnerTick tick = report();
        if (listener_) listener_(tick);
        reported = now;
      }
      if (moved || stop.stop_requested()) continue;
      std::chrono::microseconds rest = longest_nap();
      if (went_well) try_to([&] { rest = nap(); });
      watch_->wait_until(now + rest);
    }
    const RunnerTick tick = report();
    // On failure the leases run out by themselves.
    try_to([this] { give_back(); });
    if (listener_) listener_(tick);
  }

  void on_tick(std::function<void(const RunnerTick&)> listener) { listener_ = std::move(listener); }
  const std::string& worker() const noexcept { return worker_; }

 private:
  using Key = std::pair<std::string, std::int64_t>;

  Timestamp now() const { return store_.database().now(); }
  follow::Term lease() const { return {worker_, options_.lease_ttl, now(), sign_.number()}; }

  /// False if the store or memory has a temporary problem.
  bool try_to(FunctionRef<void()> work) {
    const auto trouble = follow::trouble_of(store_.database(), work);
    if (trouble) report_trouble(*trouble);
    return !trouble;
  }

  void report_trouble(const std::string& trouble) {
    if (!troubles_.lets_through(trouble, store_.database().clock().steady_now())) return;
    const std::array fields{LogEntry::Field{"worker", worker_}};
    store_.conventions().log->write({.level = LogLevel::warning,
                                     .name = "projection.store_trouble",
                                     .message = trouble,
                                     .fields = fields});
  }

  /// Reads the state of our projectors, and takes free ones.
  void refresh() {
    std::vector<Build> builds;
    std::set<std::string> processes;
    store_.database().read([&](Connection& connection) {
      builds = projections::read_builds(connection);
      processes = projections::process_names(connection);
      auto parked = connection.rows(projections::sql::has_wanted_again{});
      wants_again_ = parked.step() && parked.wanted();
    });
    std::map<Key, std::unique_ptr<Seat>> before = std::exchange(seats_, {});
    has_retired_ = false;
    for (const Build& build : builds) {
      if (build.state == BuildState::retired) has_retired_ = true;
      const bool has_timers = processes.contains(build.name);
      if (const detail::Registration* const known = registration_of(build, has_timers)) {
        keep_seat(build, *known, before);
      }
    }
    if (!processes.empty()) refresh_timers();
    acquire_free();
  }

  /// Reads when our processes' timers fire next, and which of them wait for us.
  void refresh_timers() {
    store_.database().read([&](Connection& connection) {
      timer_clock_.look(connection);
      for (const auto& [key, seat] : seats_) {
        if (!seat->has_timers()) continue;
        seat->next_wake =
            projections::next_wake(connection, seat->build).value_or(Timestamp::max());
        seat->knows_unknown = projections::knows_unknown(connection, *seat);
      }
    });
    timer_clock_.settle();
  }

  const detail::Registration* registration_of(const Build& build, bool has_timers) const {
    if (build.state != BuildState::living && build.state != BuildState::building) return nullptr;
    if (build.kind == ProjectionKind::inline_) return nullptr;
    for (const detail::Registration& one : registrations_) {
      if (one.name == build.name && one.version == build.version && one.has_timers == has_timers) {
        return &one;
      }
    }
    return nullptr;
  }

  void keep_seat(const Build& build, const detail::Registration& registration,
                 std::map<Key, std::unique_ptr<Seat>>& before) {
    const Key key{build.name, build.number};
    auto known = before.find(key);
    auto seat = known != before.end() ? std::move(known->second)
                                      : std::make_unique<Seat>(store_, registration, build);
    seat->held = seat->held && build.owner == worker_ && build.epoch == seat->build.epoch;
    const bool resumes = seat->held && build.stopped && seat->build.resumes;
    seat->build = build;
    if (resumes) resume(*seat);
    seats_.emplace(key, std::move(seat));
  }

  /// Checking whether an owner has ended is a query on a server. It is made once per owner, and no
  /// more often than an idle runner looks.
  std::set<const Seat*> find_free() {
    const Timestamp at = now();
    const auto begun = steady_clock::now();
    const bool may_ask = begun >= asked_at_ + options_.idle_backoff;
    std::map<std::int64_t, bool> has_ended;
    const auto is_orphaned = [&](const follow::StoredLease& lease) {
      if (!may_ask || !lease.presence) return false;
      const auto [one, is_new] = has_ended.try_emplace(*lease.presence);
      if (is_new) one->second = follow::is_orphaned(lease, store_.database());
      return one->second;
    };
    std::set<const Seat*> free;
    for (const auto& [key, seat] : seats_) {
      if (seat->held || seat->is_left) continue;
      const Build& build = seat->build;
      if (projections::is_free(build, at) || is_orphaned(build.lease)) free.insert(seat.get());
    }
    if (!has_ended.empty()) asked_at_ = begun;
    return free;
  }

  void acquire_free() {
    bool any_unknown = false;
    for (const auto& [key, seat] : seats_) {
      seat->is_left = !seat->held && (now() < seat->left_until || is_for_newer(*seat));
      any_unknown = any_unknown || (!seat->is_left && seat->knows_unknown);
    }
    const std::set<const Seat*> free = find_free();
    const Timestamp at = now();
    if (free.empty() && !any_unknown && !renewal_.is_due(at)) return;
    sign_.show();
    const follow::Term mine = lease();
    const bool is_new_minute = database::minute_of(mine.now) != sampled_minute_;
    const std::int64_t last = is_new_minute ? store_.last_sequence().value() : 0;
    std::vector<Seat*> fresh;
    std::vector<std::pair<Seat*, std::string>> altered;
    store_.database().write(
        [&](Connection& connection) {
          for (const auto& [key, seat] : seats_) {
            if (seat->is_left) continue;
            if (seat->held) {
              projections::renew(connection, seat->build, mine.until());
            } else if (acquire(connection, *seat, mine, free.contains(seat.get()))) {
              fresh.push_back(seat.get());
              if (seat->build.stopped && seat->build.failing.has_no_attempt()) resume(*seat);
              auto problem =
                  projections::tables_of(connection).find_alteration(connection, seat->build);
              if (!problem.empty()) altered.emplace_back(seat.get(), std::move(problem));
            }
            if (seat->knows_unknown) adopt_unknown(connection, *seat);
          }
          if (is_new_minute) sample(connection, fresh, last, mine.now);
        },
        database::Sync::none);
    renewal_.note(mine.now);
    sampled_minute_ = database::minute_of(mine.now);
    for (Seat* const seat : fresh) seat->held = true;
    for (const auto& [seat, problem] : altered) {
      if (!seat->build.stopped) feed_.stop(*seat, problem);
    }
  }

  /// Samples our projectors' positions, including the `fresh` ones, for the history.
  void sample(Connection& connection, const std::vector<Seat*>& fresh, std::int64_t last,
              Timestamp at) const {
    std::vector<database::Sample> samples;
    for (const auto& [key, seat] : seats_) {
      const Build& build = seat->build;
      const bool is_ours =
          seat->held || std::find(fresh.begin(), fresh.end(), seat.get()) != fresh.end();
      if (!is_ours || build.state != BuildState::living) continue;
      const auto [events, lag] = projections::lag_of(connection, build, last, at);
      samples.push_back({build.name + ".position_total", build.position});
      samples.push_back(
          {build.name + ".lag_ms", std::chrono::floor<std::chrono::milliseconds>(lag).count()});
    }
    database::sample(connection, at, samples);
  }

  /// Whether it waits for a runner of a release that knows the event's version.
  bool is_for_newer(Seat& seat) {
    const Build& build = seat.build;
    if (!build.failing.has_no_attempt()) return false;
    if (seat.looked_at != build.failing.at) {
      seat.looked_at = build.failing.at;
      const GlobalSequence failing{build.failing.at};
      EventRange event = store_.read_at({&failing, 1});
      const auto found = event.next_page();
      seat.refuses =
          !found.empty() && seat.handling(found.front().kind) == detail::Handling::refuse;
    }
    return seat.refuses && (build.stopped || build.failing.next_attempt_at > now());
  }

  /// It stopped because no runner knew the version of an event. Trying shows whether this one does;
  /// until then it stays stopped in the database.
  static void resume(Seat& seat) {
    seat.build.stopped = false;
    seat.build.resumes = true;
  }

  /// A process with timers that only this runner knows is taken from its owner.
  static bool acquire(Connection& connection, Seat& seat, const follow::Term& mine, bool is_free) {
    const bool seizes = seat.knows_unknown && projections::knows_unknown(connection, seat);
    if (!seizes) return is_free && projections::acquire(connection, seat.build, mine);
    projections::seize(connection, seat.build, mine);
    return true;
  }

  static void adopt_unknown(Connection& connection, Seat& seat) {
    projections::adopt_unknown(connection, seat);
    seat.knows_unknown = false;
    seat.next_wake = Timestamp::min();
  }

  bool can_run(const Seat& seat) const {
    return seat.held && !seat.build.stopped && !is_pausing(seat);
  }

  bool is_pausing(const Seat& seat) const { return pause_left(seat).count() > 0; }

  std::chrono::microseconds pause_left(const Seat& seat) const {
    // This runner may have the version or the memory that another one lacked.
    if (seat.build.failing.has_no_attempt() && seat.shortages == 0)
      return std::chrono::microseconds{0};
    const bool is_counted = seat.shortages == 0;
    const follow::Backoff backoff = projections::backoff_of(seat.registration.options, is_counted);
    return seat.build.failing.pause_left(backoff, now());
  }

  /// Gives every projector a turn. True if anything moved, or may be able to.
  bool pass(const std::stop_token& stop) {
    const FeedCounts before = feed_.counts();
    const std::int64_t taken_before = taken_over_;
    if (wants_again_) project_parked();
    const std::int64_t last = projections::last_sequence(store_);
    std::vector<Seat*> behind;
    for (const auto& [key, seat] : seats_) {
      if (can_run(*seat) && seat->build.position < last) behind.push_back(seat.get());
    }
    projections::feed_in_groups(store_, feed_, behind, {.end = last, .pages = pages_a_turn}, [&] {
      progress_.tell();
      return !stop.stop_requested();
    });
    const bool has_more = fire_timers(last, stop);
    take_over_built();
    if (has_retired_) projections::drop_retired(store_, now() - options_.drop_after);
    const FeedCounts& after = feed_.counts();
    const bool moved = has_more || after.commits != before.commits ||
                       after.failed != before.failed || after.timers_fired != before.timers_fired ||
                       after.timers_failed != before.timers_failed || taken_over_ != taken_before;
    if (moved) progress_.tell();
    return moved;
  }

  /// Fires the timers of each process that has handled every event. True if there are more.
  bool fire_timers(std::int64_t last, const std::stop_token& stop) {
    bool has_more = false;
    for (const auto& [key, seat] : seats_) {
      if (!seat->has_timers() || !can_run(*seat) || seat->build.position < last) continue;
      const auto now = timer_clock_.now();
      if (!now || seat->next_wake > *now || stop.stop_requested()) continue;
      has_more = feed_.fire(*seat, timer_clock_) || has_more;
    }
    return has_more;
  }

  void take_over_built() {
    for (const auto& [key, seat] : seats_) {
      if (seat->build.state != BuildState::building || !can_run(*seat)) continue;
      try {
        if (projections::take_over(store_, feed_, *seat)) ++taken_over_;
      } catch (const projections::LeaseLost&) {
        seat->held = false;
      } catch (const projections::VersionUnknown&) {
        // The next pass meets the event, and leaves the build to others.
      } catch (const UsageError& e) {
        feed_.stop(*seat, e.what());
      }
    }
  }

  void project_parked() {
    for (const auto& [key, seat] : seats_) {
      if (!seat->held) continue;
      const Build& build = seat->build;
      for (;;) {
        std::int64_t sequence = 0;
        int attempts = 0;
        store_.database().read([&](Connection& connection) {
          auto wanted = connection.rows(
              projections::sql::wanted_again{.name = build.name, .build = build.number});
          if (!wanted.step()) return;
          sequence = wanted.sequence();
          attempts = static_cast<int>(wanted.attempts());
        });
        if (sequence == 0 || !seat->held) break;
        feed_.project_parked(*seat, sequence, attempts);
      }
    }
  }

  /// The time until a lease must be renewed.
  std::chrono::microseconds longest_nap() const {
    return std::min<std::chrono::microseconds>(options_.idle_backoff, renewal_.interval());
  }

  /// How long to sleep unless woken: no longer than until the next retry or timer.
  std::chrono::microseconds nap() const {
    std::chrono::microseconds nap = longest_nap();
    for (const auto& [key, seat] : seats_) {
      if (!seat->held || seat->build.stopped || seat->build.failing.at == 0) continue;
      // A build that waits for another runner has just been tried.
      if (seat->build.failing.has_no_attempt() && seat->shortages == 0) continue;
      nap = std::min(nap, pause_left(*seat));
    }
    return std::min(nap, until_next_timer());
  }

  std::chrono::microseconds until_next_timer() const {
    auto nap = std::chrono::microseconds::max();
    const auto now = timer_clock_.now();
    if (!now) return nap;
    for (const auto& [key, seat] : seats_) {
      if (!seat->has_timers() || !can_run(*seat) || seat->next_wake == Timestamp::max()) continue;
      nap = std::min(nap, std::max(seat->next_wake - *now, std::chrono::microseconds{0}));
    }
    return nap;
  }

  void give_back() {
    if (std::none_of(seats_.begin(), seats_.end(),
                     [](const auto& one) { return one.second->held; })) {
      return;
    }
    store_.database().write(
        [&](Connection& connection) {
          for (const auto& [key, seat] : seats_) {
            if (seat->held) projections::release(connection, seat->build);
          }
        },
        database::Sync::none);
    renewal_.forget();
    for (const auto& [key, seat] : seats_) seat->held = false;
  }

  RunnerTick report() {
    const FeedCounts& c = feed_.counts();
    const FeedCounts& r = reported_;
    std::vector<DrivenElsewhere> elsewhere;
    for (const auto& [key, seat] : seats_) {
      if (seat->held) continue;
      const bool is_known = seat->build.owner != worker_;
      elsewhere.push_back({seat->build.name, is_known ? seat->build.owner : std::string{}});
    }
    const auto others = static_cast<std::int64_t>(elsewhere.size());
    const RunnerTick tick{.scanned = c.scanned - r.scanned,
                          .commits = c.commits - r.commits,
                          .failed = c.failed - r.failed,
                          .stopped = c.stopped - r.stopped,
                          .parked = c.parked - r.parked,
                          .left_to_newer = c.left_to_newer - r.left_to_newer,
                          .taken_over = std::exchange(taken_over_, 0),
                          .timers_fired = c.timers_fired - r.timers_fired,
                          .timers_failed = c.timers_failed - r.timers_failed,
                          .timers_parked = c.timers_parked - r.timers_parked,
                          .owned_count = static_cast<std::int64_t>(seats_.size()) - others,
                          .elsewhere_count = others,
                          .elsewhere = std::move(elsewhere)};
    reported_ = c;
    tell(tick);
    return tick;
  }

  void tell(const RunnerTick& tick) const noexcept {
    MetricSink& metrics = *store_.conventions().metrics;
    metrics.count("stela_runner_events_total", tick.scanned, {});
    metrics.count("stela_runner_commits_total", tick.commits, {});
    metrics.count("stela_runner_failures_total", tick.failed, {});
    metrics.count("stela_runner_stops_total", tick.stopped, {});
    metrics.count("stela_runner_parked_total", tick.parked, {});
    metrics.count("stela_runner_left_to_newer_total", tick.left_to_newer, {});
    metrics.count("stela_runner_takeovers_total", tick.taken_over, {});
    metrics.count("stela_runner_timers_fired_total", tick.timers_fired, {});
    metrics.count("stela_runner_timer_failures_total", tick.timers_failed, {});
    metrics.count("stela_runner_timers_parked_total", tick.timers_parked, {});
    metrics.gauge("stela_runner_owned_projectors", static_cast<double>(tick.owned_count), {});
  }

  const RunnerOptions options_;
  const std::string worker_;
  Store& store_;
  projections::Progress& progress_;
  std::vector<detail::Registration> registrations_;
  Feed feed_;
  projections::TimerClock timer_clock_;
  std::unique_ptr<database::CommitWatch> watch_;
  follow::Repetition troubles_;
  follow::Sign sign_;
  follow::Renewal renewal_;
  std::int64_t sampled_minute_ = 0;
  std::map<Key, std::unique_ptr<Seat>> seats_;
  std::function<void(const RunnerTick&)> listener_;
  FeedCounts reported_;
  /// When this runner last checked which owners have ended.
  steady_clock::time_point asked_at_{};
  std::int64_t taken_over_ = 0;
  bool wants_again_ = false;
  bool has_retired_ = false;
};

Runner::Runner(Projections& projections, const RunnerOptions& options)
    : driver_{std::make_unique<Driver>(projections, options)} {}

Runner::~Runner() = default;

RunnerTick Runner::run_once() {
  return driver_->run_once();
}
void Runner::run(std::stop_token stop) {
  driver_->run(std::move(stop));
}
void Runner::on_tick(std::function<void(const RunnerTick&)> listener) {
  driver_->on_tick(std::move(listener));
}
const std::string& Runner::worker() const noexcept {
  return driver_->worker();
}

}  // namespace stela
