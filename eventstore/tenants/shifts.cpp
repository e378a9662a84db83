#include "tenants/shifts.hpp"

#include "tenants/places.hpp"
#include "tenants/pool.hpp"
#include "tenants/registry.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace stela::tenants {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Steady = steady_clock::time_point;

constexpr auto turn = 1s;
/// How long a tenant without work keeps its thread if nobody waits for one.
constexpr auto linger = 5s;
constexpr auto first_pause = 1s;
constexpr auto longest_pause = 60s;
/// How often stores are looked at for changes; less often if that takes long.
constexpr auto sweep_pause = 100ms;
constexpr auto longest_sweep_pause = 1s;
constexpr auto sweep_pause_once = 20ms;
constexpr int share_of_sweeps = 100;
/// On a server not every change shows: a tenant is looked at again after this time.
constexpr auto look_again_after = 30s;

/// Calls `f` when a scope ends, however it does.
template <class F>
class AtEnd {
 public:
  explicit AtEnd(const F& f) : f_{f} {}
  ~AtEnd() { f_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const F& f_;
};

}  // namespace

/// Shared with the listeners of stores, which may be called last.
class Shifts::Plan {
 public:
  Plan(Tenants& tenants, Work& work, int threads)
      : tenants_{tenants},
        work_{work},
        threads_{threads},
        activity_{watch_activity(tenants.registry().stores())} {}

  void run(std::stop_token stop, bool is_once) {
    std::stop_source ends;
    // Under the lock, so that nobody misses it who is about to wait.
    const auto end = [&] {
      const std::lock_guard lock{mutex_};
      ends.request_stop();
      changed_.notify_all();
    };
    {
      const std::lock_guard lock{mutex_};
      is_once_ = is_once;
    }
    refresh();
    std::vector<std::jthread> crew;
    const AtEnd at_end{end};
    const std::stop_callback on_stop{stop, end};
    for (int i = 0; i < threads_; ++i) crew.emplace_back([&] { take_turns(ends.get_token()); });
    while (!stop.stop_requested()) {
      const Steady begun = steady_clock::now();
      try_to_sweep();
      std::unique_lock lock{mutex_};
      if (is_once && is_quiet()) break;
      auto pause = std::clamp<Steady::duration>(share_of_sweeps * (steady_clock::now() - begun),
                                                sweep_pause, longest_sweep_pause);
      if (is_once) pause = std::min<Steady::duration>(pause, sweep_pause_once);
      changed_.wait_for(lock, pause, [&] { return stop.stop_requested(); });
    }
  }

  TenantsStanding standing() const {
    const std::lock_guard lock{mutex_};
    TenantsStanding all;
    if (!registry_trouble_.empty()) all.troubles.push_back({"(registry)", registry_trouble_});
    for (const auto& [name, line] : lines_) {
      ++all.tenants;
      if (line.is_asked) ++all.asked;
      if (line.is_asked && line.failures == 0) ++all.answered;
      if (line.state == State::served) ++all.served;
      if (line.state == State::waiting) ++all.waiting;
      if (!line.trouble.empty()) all.troubles.push_back({name, line.trouble});
    }
    return all;
  }

  /// Called by a store's listener.
  void note_commit(const std::string& name) {
    const std::lock_guard lock{mutex_};
    const auto line = lines_.find(name);
    if (line == lines_.end()) return;
    Line& one = line->second;
    if (one.state == State::idle && one.failures == 0) call(line->first, one);
    if (one.state == State::served) one.is_stale = true;
  }

 private:
  enum class State : std::uint8_t { unknown, idle, waiting, served };

  struct Line {
    State state = State::unknown;
    bool is_asked = false;
    /// It was written to while it was being served.
    bool is_stale = false;
    Stamp stamp{};
    /// When it is to be looked at although nothing was written.
    Steady due = Steady::max();
    int failures = 0;
    std::string trouble = {};
  };

  /// Registers new tenants, and forgets those that are no longer served.
  void refresh() {
    std::set<std::string, std::less<>> all;
    for (const Tenant& tenant : tenants_.list()) {
      if (work_.serves(tenant.state)) all.insert(tenant.name);
    }
    const std::lock_guard lock{mutex_};
    std::erase_if(lines_, [&](const auto& entry) {
      const auto& [name, line] = entry;
      const bool is_busy = line.state == State::waiting || line.state == State::served;
      return !is_busy && !all.contains(name);
    });
    for (const std::string& name : all) {
      if (lines_.try_emplace(name).second) unknown_.push_back(name);
    }
    if (!unknown_.empty()) changed_.notify_all();
  }

  /// Without the registry, the known tenants are served.
  void try_to_sweep() {
    std::string trouble;
    try {
      sweep();
    } catch (const std::exception& e) {
      trouble = e.what();
      next_refresh_ = steady_clock::now() + 1s;
    }
    const std::lock_guard lock{mutex_};
    registry_trouble_ = std::move(trouble);
  }

  /// Calls those whose stores have changed, or whose time has come.
  void sweep() {
    if (steady_clock::now() >= next_refresh_) {
      refresh();
      tenants_.pool().close_idle();
      next_refresh_ = steady_clock::now() + 1s;
    }
    std::vector<std::string> idle;
    {
      const std::lock_guard lock{mutex_};
      for (const auto& [name, line] : lines_) {
        if (line.state == State::idle) idle.push_back(name);
      }
    }
    std::vector<Stamp> stamps;
    try {
      stamps = activity_->look(idle);
    } catch (const Error&) {
      // The tenants' own calls meet the error, and report it.
      stamps.resize(idle.size());
    }
    const std::lock_guard lock{mutex_};
    const Steady now = steady_clock::now();
    for (std::size_t i = 0; i < idle.size(); ++i) {
      const auto line = lines_.find(idle[i]);
      if (line == lines_.end() || line->second.state != State::idle) continue;
      Line& one = line->second;
      // A failing tenant waits for its pause, whatever happens to its files.
      const bool has_changed = one.failures == 0 && stamps[i] != one.stamp;
      if (has_changed || now >= one.due) call(line->first, one);
    }
  }

  /// Under the lock.
  void call(const std::string& name, Line& line) {
    line.state = State::waiting;
    active_.push_back(name);
    changed_.notify_one();
  }

  /// Under the lock: nobody has work, and everybody was asked.
  bool is_quiet() const {
    return active_.empty() && unknown_.empty() &&
           std::none_of(lines_.begin(), lines_.end(), [](const auto& entry) {
             const State state = entry.second.state;
             return state == State::waiting || state == State::served;
           });
  }

  std::optional<std::string> next(std::stop_token stop) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock,
                  [&] { return stop.stop_requested() || !active_.empty() || !unknown_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    // Who has work comes before who may have some.
    std::deque<std::string>& queue = active_.empty() ? unknown_ : active_;
    std::string name = std::move(queue.front());
    queue.pop_front();
    const auto line = lines_.find(name);
    if (line == lines_.end()) return std::string{};
    line->second.state = State::served;
    line->second.is_stale = false;
    return name;
  }

  void take_turns(std::stop_token stop) {
    while (const auto name = next(stop)) {
      if (!name->empty()) take_turn(*name, stop);
    }
  }

  void take_turn(const std::string& name, std::stop_token stop) {
    Line after;
    bool has_work = false;
    try {
      TenantStore tenant = tenants_.use(name);
      std::string obstacle;
      if (work_.look(tenant).has_work) obstacle = work_.serve(tenant, stop, turn_of());
      // Whatever is committed after this changes the stamp.
      after.stamp = stamp_of(name);
      const Look seen = work_.look(tenant);
      has_work = seen.has_work && obstacle.empty();
      after.due = due_at(seen);
      after.trouble = obstacle.empty() ? seen.trouble : obstacle;
      if (!obstacle.empty()) after.due = std::min(after.due, steady_clock::now() + linger);
    } catch (const std::exception& e) {
      after.trouble = e.what();
      after.failures = 1;
    }
    const std::lock_guard lock{mutex_};
    const auto line = lines_.find(name);
    if (line == lines_.end()) return;
    Line& one = line->second;
    const bool is_stale = one.is_stale;
    if (after.failures > 0) {
      after.failures = one.failures + 1;
      after.due = steady_clock::now() + pause_after(after.failures);
    }
    after.is_asked = true;
    after.state = State::idle;
    one = std::move(after);
    if (one.failures == 0 && (has_work || is_stale)) call(line->first, one);
    changed_.notify_all();
  }

  std::function<bool(bool)> turn_of() {
    return [this, begun = steady_clock::now(),
            idle_since = steady_clock::now()](bool is_idle) mutable {
      const Steady now = steady_clock::now();
      if (!is_idle) idle_since = now;
      const std::lock_guard lock{mutex_};
      const bool others_wait = !active_.empty() || !unknown_.empty();
      if (others_wait) return is_idle || now >= begun + turn;
      return is_once_ ? is_idle : now >= idle_since + linger;
    };
  }

  Stamp stamp_of(const std::string& name) {
    const std::lock_guard lock{activity_mutex_};
    if (own_activity_ == nullptr) {
      own_activity_ = watch_activity(tenants_.registry().stores());
    }
    return own_activity_->look({&name, 1}).front();
  }

  Steady due_at(const Look& seen) const {
    Steady due = Steady::max();
    if (tenants_.registry().stores().is_on_server()) {
      due = steady_clock::now() + look_again_after;
    }
    if (seen.next) due = std::min<Steady>(due, steady_clock::now() + *seen.next);
    return due;
  }

  static Steady::duration pause_after(int failures) {
    return std::min<Steady::duration>(first_pause * (1 << std::min(failures - 1, 6)),
                                      longest_pause);
  }

  Tenants& tenants_;
  Work& work_;
  const int threads_;
  const std::unique_ptr<Activity> activity_;
  Steady next_refresh_{};
  std::mutex activity_mutex_;
  /// Guarded by activity_mutex_.
  std::unique_ptr<Activity> own_activity_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::map<std::string, Line, std::less<>> lines_;
  std::deque<std::string> active_;
  std::deque<std::string> unknown_;
  /// Nobody keeps a thread without work.
  bool is_once_ = false;
  std::string registry_trouble_;
};

namespace {

int checked_threads(int threads, int most_open) {
  if (threads == 0) return std::clamp(most_open / 4, 1, 16);
  if (threads > 0 && 2 * threads <= most_open) return threads;
  throw UsageError{std::to_string(threads) + " threads keep as many stores open, and most_open = " +
                   std::to_string(most_open) +
                   " leaves too few for others; take 1 thread or more, and at most half of it"};
}

}  // namespace

Shifts::Shifts(Tenants& tenants, Work& work, int threads)
    : plan_{std::make_shared<Plan>(tenants, work,
                                   checked_threads(threads, tenants.registry().most_open()))} {
  tenants.pool().listen(plan_,
                        [plan = plan_.get()](const std::string& name) { plan->note_commit(name); });
}

Shifts::~Shifts() = default;

void Shifts::run(std::stop_token stop) {
  plan_->run(std::move(stop), false);
}
void Shifts::run_once() {
  plan_->run({}, true);
}
TenantsStanding Shifts::standing() const {
  return plan_->standing();
}

}  // namespace stela::tenants
