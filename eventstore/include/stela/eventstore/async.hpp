// Appends to a store without blocking the calling thread. For Boost.Asio, include <stela/asio.hpp>.
#pragma once

#include <stela/eventstore/detail/owned_append.hpp>
#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/context.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace stela {

struct AsyncOptions {
  /// The most calls that may be in flight, from the call until its answer: at least 1.
  std::size_t in_flight = 1024;
};

struct AsyncCall {
  /// If `in_flight` calls are in flight already, accepts this one nevertheless and counts it: its
  /// caller waits instead of being refused. Otherwise such a call fails with StoreBusy at once.
  bool waits = false;
  /// If a stop is requested before the call has begun, it fails with Cancelled and writes nothing.
  /// A later request has no effect.
  std::stop_token stop = {};
  /// The context for `run`, in place of the calling thread's.
  const Context* context = nullptr;
};

namespace detail {

/// Receives the outcome of an append.
class AsyncAnswer {
 public:
  virtual ~AsyncAnswer() = default;
  virtual void give(std::exception_ptr error, AppendResult result) noexcept = 0;
};

/// A function to run, and the receiver of its outcome.
class AsyncWork {
 public:
  virtual ~AsyncWork() = default;
  /// Calls the function, and keeps its result or exception.
  virtual void run() noexcept = 0;
  /// Delivers the kept outcome, or `refusal` if the function didn't run.
  virtual void give(const std::exception_ptr& refusal) noexcept = 0;
};

template <class Done>
class AsyncAnswerTo final : public AsyncAnswer {
 public:
  explicit AsyncAnswerTo(Done done) : done_{std::move(done)} {}
  void give(std::exception_ptr error, AppendResult result) noexcept override {
    done_(std::move(error), std::move(result));
  }

 private:
  Done done_;
};

template <class F, class Done>
class AsyncWorkFor final : public AsyncWork {
 public:
  using Result = std::invoke_result_t<F&>;

  AsyncWorkFor(F f, Done done, const Context& context)
      : f_{std::move(f)}, done_{std::move(done)}, context_{context} {}

  void run() noexcept override {
    try {
      const auto scope = ContextScope::exactly(context_);
      if constexpr (std::is_void_v<Result>) {
        f_();
      } else {
        result_.emplace(f_());
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void give(const std::exception_ptr& refusal) noexcept override {
    if (refusal) error_ = refusal;
    if constexpr (std::is_void_v<Result>) {
      done_(std::move(error_));
    } else {
      done_(std::move(error_), result_ ? std::move(*result_) : Result{});
    }
  }

 private:
  F f_;
  Done done_;
  Context context_;
  std::exception_ptr error_;
  std::optional<std::conditional_t<std::is_void_v<Result>, bool, Result>> result_;
};

}  // namespace detail

/// Makes appends to a store, and runs functions that use it, on threads of the caller's executor.
/// It starts no thread. Calls return at once, however busy the store is.
///
/// Appends are made in the order of the calls, many in one commit, together with appends made
/// directly by other threads. A failed append doesn't stop later ones. An append is answered once
/// it is durable, with the result or exception of `Store::append`. Listeners of `on_commit` and
/// participants of the store run on the executor, with the context of the append.
///
/// The store and the executor must outlive this object. If the executor stops, calls that haven't
/// begun wait for the destructor, which answers them. In a forked child every call fails with
/// UsageError, and the copy may be destroyed.
/// Threads: any number at once; destroy it when no call is running.
class STELA_EVENTSTORE_EXPORT AsyncStore {
 public:
  using Task = std::function<void()>;
  /// Schedules the function on a thread that may block, after `Post` has returned. The function
  /// doesn't throw. `Post` may throw for work, which then fails, but not for an answer: that would
  /// end the process.
  using Post = std::function<void(Task)>;

  /// UsageError if an option is out of range, or if there is no `post`.
  AsyncStore(Store& store, Post post, const AsyncOptions& options = {});
  /// Accepts no more calls. Calls that haven't begun fail with Cancelled; the destructor waits for
  /// the others. Don't destroy it on a thread that is running one of them.
  ~AsyncStore();
  AsyncStore(const AsyncStore&) = delete;
  AsyncStore& operator=(const AsyncStore&) = delete;

  /// Calls `done(std::exception_ptr, AppendResult)` once, when the append has ended. That may
  /// happen on any thread, even before this returns; `done` must not block, call a store or throw.
  template <class Done>
  requires std::invocable<Done&, std::exception_ptr, AppendResult>
  void append(OwnedAppend request, Done done, const AsyncCall& call = {}) {
    start(std::move(request), std::make_unique<detail::AsyncAnswerTo<Done>>(std::move(done)), call);
  }

  /// Calls `f()` on a thread of the executor, in the context of this call, and then
  /// `done(std::exception_ptr, what it returned)`, as `append` does. Without a result,
  /// `done(std::exception_ptr)`. The functions run in any order, and alongside appends.
  template <class F, class Done>
  requires std::invocable<F&>
  void run(F f, Done done, const AsyncCall& call = {}) {
    using Result = std::invoke_result_t<F&>;
    static_assert(
        std::is_void_v<Result> || std::default_initializable<Result>,
        "stela: the answer to a call that failed has a result, too; if it has no default, "
        "return a std::optional");
    const Context& context = call.context != nullptr ? *call.context : current_context();
    start(std::make_unique<detail::AsyncWorkFor<F, Done>>(std::move(f), std::move(done), context),
          call);
  }

  /// The number of calls in flight.
  std::size_t in_flight() const;

 private:
  class State;

  void start(OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer,
             const AsyncCall& call);
  void start(std::unique_ptr<detail::AsyncWork> work, const AsyncCall& call);

  /// Shared with posted tasks, which may run after this object is gone.
  std::shared_ptr<State> state_;
};

}  // namespace stela
