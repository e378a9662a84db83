#include <stela/framework/error.hpp>
#include <stela/projections/waits.hpp>

#include "builds.hpp"
#include "database/database.hpp"
#include "database/owner.hpp"
#include "progress.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace stela {

using database::Connection;
using projections::Build;
using std::chrono::steady_clock;

namespace {

using Time = steady_clock::time_point;

/// The pauses while projectors move, and while nothing happens.
constexpr std::chrono::milliseconds shortest_pause{1};
constexpr std::chrono::milliseconds longest_pause{20};
/// How many times longer than a pause the silence before it must be.
constexpr int share_of_silence = 4;

/// For a look that doesn't wait for a timer.
constexpr Time at_once = Time::min();

constexpr auto closed = "nobody looks at the projections any more; the wait was given up";
constexpr auto stopped = "the wait was asked to stop before the projector was there";

std::exception_ptr cancelled(const char* why) {
  return std::make_exception_ptr(Cancelled{why});
}

}  // namespace

class ProjectionWaits::State final : public projections::Progress::Listener,
                                     public std::enable_shared_from_this<State> {
 public:
  State(Projections& the_projections, Post post, PostAfter post_after, std::size_t most)
      : store_{the_projections.store()},
        post_{std::move(post)},
        post_after_{std::move(post_after)},
        most_{most} {}

  void wait(std::string projector, std::int64_t sequence, Time deadline, Done done,
            const std::stop_token& stop);
  void on_progress() noexcept override { ask(at_once); }
  /// Answers all callers, then waits for looks that have begun.
  void close() noexcept;
  bool is_of_this_process() const noexcept { return owner_.is_this(); }
  std::size_t waiting() {
    const std::lock_guard lock{mutex_};
    return waiters_.size();
  }

 private:
  struct Waiter;
  /// In the order of arrival.
  using Line = std::map<std::uint64_t, std::unique_ptr<Waiter>>;

  /// Null if the waiter was accepted.
  std::exception_ptr enter(std::unique_ptr<Waiter>& waiter);
  void cancel(Waiter& waiter) noexcept;
  /// Asks for a look at this time, unless nobody waits or an earlier look is planned.
  void ask(Time at) noexcept;
  void look(Time at) noexcept;
  /// With the mutex held: removes and returns waiters among the first `last` that are now answered,
  /// and tells when to look for the others.
  Line take_answered(std::uint64_t last, const std::vector<Build>& builds,
                     const std::exception_ptr& failure, Time& next) noexcept;
  void fail_all(const std::exception_ptr& error) noexcept;
  static void answer(const Line& line) noexcept;
  void end() noexcept;

  Store& store_;
  const Post post_;
  const PostAfter post_after_;
  const std::size_t most_;
  const database::OwningProcess owner_;

  std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_.
  Line waiters_;
  std::uint64_t last_number_ = 0;
  /// When a caller last arrived or was answered.
  Time last_news_ = {};
  /// The next look, if one was requested. Requests for other times are void.
  Time next_ = Time::max();
  bool is_looking_ = false;
  /// Another look became due during the current one.
  bool looks_again_ = false;
  /// Threads that the destructor waits for.
  int busy_ = 0;
  bool is_closed_ = false;
};

struct ProjectionWaits::State::Waiter {
  const std::string projector;
  const std::int64_t sequence;
  const Time deadline;
  const Done done;
  std::exception_ptr error = {};
  bool is_there = false;
  // Guarded by the state's mutex.
  /// 0 before it is accepted.
  std::uint64_t number = 0;
  bool is_stopped = false;
  /// Destroyed first, without the mutex: it waits for a running stop request.
  std::optional<std::stop_callback<std::function<void()>>> on_stop = {};

  /// False if it must keep waiting.
  bool judge(const std::vector<Build>& builds, const std::exception_ptr& failure,
             Time now) noexcept {
    error = failure;
    if (error) return true;
    try {
      const auto reached = projections::has_reached(builds, projector, sequence);
      is_there = reached.value_or(false);
      return reached || now >= deadline;
    } catch (...) {
      error = std::current_exception();
      return true;
    }
  }
};

void ProjectionWaits::State::wait(std::string projector, std::int64_t sequence, Time deadline,
                                  Done done, const std::stop_token& stop) {
  auto waiter = std::unique_ptr<Waiter>{
      new Waiter{std::move(projector), sequence, deadline, std::move(done)}};
  try {
    owner_.check();
  } catch (...) {
    return waiter->done(std::current_exception(), false);
  }
  if (stop.stop_possible()) {
    waiter->on_stop.emplace(stop, [this, one = waiter.get()] { cancel(*one); });
  }
  if (const auto refusal = enter(waiter)) return waiter->done(refusal, false);
  ask(at_once);
}

std::exception_ptr ProjectionWaits::State::enter(std::unique_ptr<Waiter>& waiter) {
  const std::lock_guard lock{mutex_};
  if (is_closed_) return cancelled(closed);
  if (waiter->is_stopped) return cancelled(stopped);
  if (waiters_.size() >= most_) {
    return std::make_exception_ptr(
        StoreBusy{std::to_string(most_) +
                  " callers wait for projectors, which is as many as may; try again"});
  }
  waiter->number = ++last_number_;
  waiters_.emplace_hint(waiters_.end(), waiter->number, std::move(waiter));
  last_news_ = steady_clock::now();
  return {};
}

void ProjectionWaits::State::cancel(Waiter& waiter) noexcept {
  std::unique_lock lock{mutex_};
  waiter.is_stopped = true;
  // Destroying the waiter ends its stop callback, which is the caller of this function.
  const auto left = waiters_.extract(waiter.number);
  lock.unlock();
  if (left) left.mapped()->done(cancelled(stopped), false);
}

void ProjectionWaits::State::ask(Time at) noexcept {
  {
    const std::lock_guard lock{mutex_};
    if (is_closed_ || waiters_.empty() || next_ <= at) return;
    next_ = at;
    ++busy_;
  }
  try {
    Task task = [state = shared_from_this(), at] { state->look(at); };
    if (at == at_once) {
      post_(std::move(task));
    } else {
      post_after_(std::max(at - steady_clock::now(), Time::duration{0}), std::move(task));
    }
  } catch (...) {
    fail_all(std::current_exception());
  }
  end();
}

void ProjectionWaits::State::look(Time at) noexcept {
  std::uint64_t last = 0;
  {
    const std::lock_guard lock{mutex_};
    if (is_closed_ || next_ != at) return;
    next_ = Time::max();
    if (waiters_.empty()) return;
    looks_again_ = is_looking_;
    if (std::exchange(is_looking_, true)) return;
    ++busy_;
    last = last_number_;
  }
  std::vector<Build> builds;
  std::exception_ptr failure;
  try {
    store_.database().read(
        [&](Connection& connection) { builds = projections::read_builds(connection); });
  } catch (...) {
    failure = std::current_exception();
  }
  Time next = Time::max();
  Line answered;
  {
    const std::lock_guard lock{mutex_};
    is_looking_ = false;
    answered = take_answered(last, builds, failure, next);
    if (std::exchange(looks_again_, false)) next = at_once;
  }
  answer(answered);
  ask(next);
  end();
}

ProjectionWaits::State::Line ProjectionWaits::State::take_answered(
    std::uint64_t last, const std::vector<Build>& builds, const std::exception_ptr& failure,
    Time& next) noexcept {
  const Time now = steady_clock::now();
  Line answered;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    const auto one = at++;
    if (one->first <= last && one->second->judge(builds, failure, now)) {
      answered.insert(answered.end(), waiters_.extract(one));
    } else {
      next = std::min(next, one->second->deadline);
    }
  }
  if (!answered.empty()) last_news_ = now;
  if (waiters_.empty()) return answered;
  const Time::duration silence = now - last_news_;
  next = std::min(next, now + std::clamp<Time::duration>(silence / share_of_silence, shortest_pause,
                                                         longest_pause));
  return answered;
}

void ProjectionWaits::State::fail_all(const std::exception_ptr& error) noexcept {
  Line failed;
  {
    const std::lock_guard lock{mutex_};
    next_ = Time::max();
    failed.swap(waiters_);
  }
  for (const auto& [number, waiter] : failed) waiter->error = error;
  answer(failed);
}

void ProjectionWaits::State::answer(const Line& line) noexcept {
  for (const auto& [number, waiter] : line) {
    waiter->on_stop.reset();
    waiter->done(waiter->error, waiter->is_there && !waiter->error);
  }
}

void ProjectionWaits::State::end() noexcept {
  const std::lock_guard lock{mutex_};
  if (--busy_ == 0) ended_.notify_all();
}

void ProjectionWaits::State::close() noexcept {
  {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
  }
  fail_all(cancelled(closed));
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return busy_ == 0; });
}

ProjectionWaits::ProjectionWaits(Projections& projections, Post post, PostAfter post_after,
                                 const WaitsOptions& options) {
  if (options.waiting == 0) throw UsageError{"waiting is 0; at least 1 caller must be possible"};
  if (!post || !post_after) throw UsageError{"there is no executor"};
  state_ =
      std::make_shared<State>(projections, std::move(post), std::move(post_after), options.waiting);
  projections.progress().add(state_);
}

ProjectionWaits::~ProjectionWaits() {
  if (state_->is_of_this_process()) {
    state_->close();
    return;
  }
  // A forked child lacks the parent's threads, which may be anywhere in the state, so leak it.
  new std::shared_ptr<State>{std::move(state_)};
}

void ProjectionWaits::wait_for(std::string projector, GlobalSequence sequence,
                               std::chrono::milliseconds timeout, Done done,
                               const std::stop_token& stop) {
  state_->wait(std::move(projector), sequence.value(), projections::deadline_of(timeout),
               std::move(done), stop);
}

std::size_t ProjectionWaits::waiting() const {
  return state_->waiting();
}

}  // namespace stela
