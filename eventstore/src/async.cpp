#include "commit_queue.hpp"
#include "database/owner.hpp"
#include "store_core.hpp"

#include <stela/eventstore/async.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace stela {
namespace {

Cancelled closed() {
  return Cancelled{"the store is no longer used asynchronously; the call hadn't begun"};
}

Cancelled stopped() {
  return Cancelled{"the call was asked to stop before it had begun"};
}

/// The most threads that are posted or waiting for their turn. One is next, and another waits after
/// it, so that a group begins while the previous one waits for its flush.
constexpr std::size_t most_drains = 2;

}  // namespace

class AsyncStore::State : public std::enable_shared_from_this<State> {
 public:
  State(Store& store, Post post, std::size_t most)
      : core_{store_core(store)}, post_{std::move(post)}, most_{most} {}

  void append(OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer,
              const AsyncCall& call);
  void run(std::unique_ptr<detail::AsyncWork> work, const AsyncCall& call);
  /// Answers calls that haven't begun, and waits for the rest.
  void close() noexcept;
  bool is_of_this_process() const noexcept { return owner_.is_this(); }
  std::size_t in_flight() {
    const std::lock_guard lock{mutex_};
    return in_flight_;
  }

 private:
  class Call;
  class Append;
  class Run;
  class Drain;
  template <class Kind>
  using Line = std::deque<std::unique_ptr<Kind>>;

  struct Cancel {
    State& state;
    Call& call;
    void operator()() const noexcept { state.cancel(call); }
  };

  /// Queues the call and asks for a thread, or refuses it.
  template <class Kind>
  void submit(Line<Kind>& line, std::unique_ptr<Kind> call, const AsyncCall& how);
  /// Call it with the mutex held. Null if the call has begun, or was never queued.
  template <class Kind>
  std::unique_ptr<Kind> leave(Line<Kind>& line, std::uint64_t number) noexcept;
  template <class Kind>
  void give_up(Line<Kind>& line, std::uint64_t number, const std::exception_ptr& error) noexcept;
  void cancel(Call& call) noexcept;
  void release_place() noexcept;

  /// Throws the executor's exception, unless another thread handles the queue.
  void ask_for_thread(Line<Append>&);
  void ask_for_thread(Line<Run>&);
  /// Carries out a group, on a thread of the executor.
  void drain() noexcept;
  void run_next() noexcept;
  /// The destructor waits for calls between these two.
  bool begin() noexcept;
  void end() noexcept;

  Store::Core& core_;
  const Post post_;
  const std::size_t most_;
  const database::OwningProcess owner_;

  std::mutex mutex_;
  std::condition_variable ended_;
  // Guarded by mutex_.
  Line<Append> appends_;
  Line<Run> runs_;
  std::size_t in_flight_ = 0;
  std::uint64_t last_number_ = 0;
  /// Requested threads, and threads in the store's queue, that have no group yet.
  std::size_t drains_ = 0;
  std::size_t busy_ = 0;
  bool is_closed_ = false;
};

class AsyncStore::State::Call {
 public:
  explicit Call(State& state) noexcept : state_{state} {}
  virtual ~Call() = default;
  virtual void refuse(const std::exception_ptr& error) noexcept = 0;

  void watch(const std::stop_token& stop) {
    if (stop.stop_possible()) on_stop_.emplace(stop, Cancel{state_, *this});
  }
  /// Call it without the mutex: it waits for a stop request in progress.
  void stop_watching() noexcept { on_stop_.reset(); }

  // Guarded by the state's mutex.
  /// 0 before it is accepted.
  std::uint64_t number = 0;
  bool is_stopped = false;

 protected:
  State& state_;

 private:
  std::optional<std::stop_callback<Cancel>> on_stop_;
};

class AsyncStore::State::Append final : public Call, public AppendClient {
 public:
  Append(State& state, OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer) noexcept
      : Call{state}, request_{std::move(request)}, answer_{std::move(answer)} {}

  void prepare() { deferred_ = state_.core_.defer(request_.request(), *this); }
  DeferredAppend& deferred() const noexcept { return *deferred_; }

  void refuse(const std::exception_ptr& error) noexcept override { answer_->give(error, {}); }
  void complete(std::exception_ptr error, AppendResult result) noexcept override {
    const std::unique_ptr<Append> self{this};
    stop_watching();
    state_.release_place();
    answer_->give(std::move(error), std::move(result));
  }

 private:
  OwnedAppend request_;
  std::unique_ptr<DeferredAppend> deferred_;
  std::unique_ptr<detail::AsyncAnswer> answer_;
};

class AsyncStore::State::Run final : public Call {
 public:
  Run(State& state, std::unique_ptr<detail::AsyncWork> work) noexcept
      : Call{state}, work_{std::move(work)} {}

  void prepare() const noexcept {}
  void refuse(const std::exception_ptr& error) noexcept override { work_->give(error); }
  void run() noexcept {
    stop_watching();
    work_->run();
    state_.release_place();
    work_->give({});
  }

 private:
  std::unique_ptr<detail::AsyncWork> work_;
};

/// The appends that a thread takes at its turn.
class AsyncStore::State::Drain final : public DeferredAppends {
 public:
  explicit Drain(State& state) noexcept : state_{state} {}

  DeferredAppend* take(std::size_t bytes) noexcept override {
    const std::lock_guard lock{state_.mutex_};
    note_turn();
    auto& line = state_.appends_;
    if (line.empty() || line.front()->deferred().size() > bytes) return nullptr;
    DeferredAppend& next = line.front().release()->deferred();
    line.pop_front();
    return &next;
  }
  /// Call it with the mutex held.
  void note_turn() noexcept {
    if (!std::exchange(has_turn_, true)) --state_.drains_;
  }

 private:
  State& state_;
  bool has_turn_ = false;
};

void AsyncStore::State::append(OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer,
                               const AsyncCall& how) {
  submit(appends_, std::make_unique<Append>(*this, std::move(request), std::move(answer)), how);
}

void AsyncStore::State::run(std::unique_ptr<detail::AsyncWork> work, const AsyncCall& how) {
  submit(runs_, std::make_unique<Run>(*this, std::move(work)), how);
}

template <class Kind>
void AsyncStore::State::submit(Line<Kind>& line, std::unique_ptr<Kind> call, const AsyncCall& how) {
  std::uint64_t number = 0;
  try {
    owner_.check();
    call->prepare();
    call->watch(how.stop);
    const std::lock_guard lock{mutex_};
    if (is_closed_) throw closed();
    if (call->is_stopped) throw stopped();
    if (in_flight_ >= most_ && !how.waits) {
      throw StoreBusy{std::to_string(in_flight_) +
                      " calls to this store are under way, which is as many as may be; try again, "
                      "or let the caller wait"};
    }
    number = call->number = ++last_number_;
    line.push_back(std::move(call));
    ++in_flight_;
  } catch (...) {
    return call->refuse(std::current_exception());
  }
  try {
    ask_for_thread(line);
  } catch (...) {
    give_up(line, number, std::current_exception());
  }
}

template <class Kind>
std::unique_ptr<Kind> AsyncStore::State::leave(Line<Kind>& line, std::uint64_t number) noexcept {
  const auto found = std::find_if(line.begin(), line.end(),
                                  [&](const auto& one) { return one->number == number; });
  if (found == line.end()) return {};
  std::unique_ptr<Kind> left = std::move(*found);
  line.erase(found);
  --in_flight_;
  return left;
}

template <class Kind>
void AsyncStore::State::give_up(Line<Kind>& line, std::uint64_t number,
                                const std::exception_ptr& error) noexcept {
  std::unique_lock lock{mutex_};
  const std::unique_ptr<Kind> left = leave(line, number);
  lock.unlock();
  if (left != nullptr) left->refuse(error);
}

void AsyncStore::State::cancel(Call& call) noexcept {
  std::unique_lock lock{mutex_};
  call.is_stopped = true;
  std::unique_ptr<Call> left = leave(appends_, call.number);
  if (left == nullptr) left = leave(runs_, call.number);
  lock.unlock();
  // Destroying the call ends its stop callback, which is running here.
  if (left != nullptr) left->refuse(std::make_exception_ptr(stopped()));
}

void AsyncStore::State::release_place() noexcept {
  const std::lock_guard lock{mutex_};
  --in_flight_;
}

void AsyncStore::State::ask_for_thread(Line<Append>& line) {
  {
    const std::lock_guard lock{mutex_};
    if (drains_ == most_drains || line.size() <= drains_ * CommitQueue::max_group_size) return;
    ++drains_;
  }
  try {
    post_([state = shared_from_this()] { state->drain(); });
  } catch (...) {
    const std::lock_guard lock{mutex_};
    if (--drains_ == 0) throw;
  }
}

void AsyncStore::State::ask_for_thread(Line<Run>&) {
  post_([state = shared_from_this()] { state->run_next(); });
}

void AsyncStore::State::drain() noexcept {
  if (!begin()) return;
  for (bool goes_on = true; goes_on;) {
    Drain drain{*this};
    core_.carry_out(drain);
    goes_on = false;
    try {
      {
        const std::lock_guard lock{mutex_};
        drain.note_turn();
      }
      ask_for_thread(appends_);
    } catch (...) {
      // The remaining appends need this thread.
      goes_on = true;
      const std::lock_guard lock{mutex_};
      ++drains_;
    }
  }
  end();
}

void AsyncStore::State::run_next() noexcept {
  std::unique_ptr<Run> next;
  {
    const std::lock_guard lock{mutex_};
    if (runs_.empty()) return;
    next = std::move(runs_.front());
    runs_.pop_front();
    ++busy_;
  }
  next->run();
  next.reset();
  end();
}

bool AsyncStore::State::begin() noexcept {
  const std::lock_guard lock{mutex_};
  if (is_closed_) return false;
  ++busy_;
  return true;
}

void AsyncStore::State::end() noexcept {
  const std::lock_guard lock{mutex_};
  if (--busy_ == 0) ended_.notify_all();
}

void AsyncStore::State::close() noexcept {
  Line<Append> appends;
  Line<Run> runs;
  {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
    in_flight_ -= appends_.size() + runs_.size();
    appends.swap(appends_);
    runs.swap(runs_);
  }
  const auto why = std::make_exception_ptr(closed());
  for (const auto& call : appends) call->refuse(why);
  for (const auto& call : runs) call->refuse(why);
  appends.clear();
  runs.clear();
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return busy_ == 0; });
}

AsyncStore::AsyncStore(Store& store, Post post, const AsyncOptions& options) {
  if (options.in_flight == 0) throw UsageError{"in_flight is 0; at least 1 call must be possible"};
  if (!post) throw UsageError{"there is no executor"};
  state_ = std::make_shared<State>(store, std::move(post), options.in_flight);
}

AsyncStore::~AsyncStore() {
  if (state_->is_of_this_process()) {
    state_->close();
    return;
  }
  // The parent's threads, which don't exist in a forked child, may have been anywhere in it: leak
  // it.
  new std::shared_ptr<State>{std::move(state_)};
}

std::size_t AsyncStore::in_flight() const {
  return state_->in_flight();
}

void AsyncStore::start(OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer,
                       const AsyncCall& call) {
  state_->append(std::move(request), std::move(answer), call);
}

void AsyncStore::start(std::unique_ptr<detail::AsyncWork> work, const AsyncCall& call) {
  state_->run(std::move(work), call);
}

}  // namespace stela
