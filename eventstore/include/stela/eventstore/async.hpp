// Appends to a store without blocking the thread that asks for them. For Boost.Asio, include
// <stela/asio.hpp>.
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
  /// How many calls may be under way at once, from the call until its answer: at least 1.
  std::size_t in_flight = 1024;
};

struct AsyncCall {
  /// If so many are under way already, this one is accepted nevertheless, and is under way from
  /// then on: its caller waits instead of being refused. Otherwise it fails with StoreBusy at once.
  bool waits = false;
  /// If it is asked to stop before it has begun, the call fails with Cancelled, and writes nothing.
  /// After that it ends as if nobody had asked.
  std::stop_token stop = {};
  /// Of a function that is run: instead of that of the calling thread.
  const Context* context = nullptr;
};

namespace detail {

/// Whoever is told how an append ended.
class AsyncAnswer {
 public:
  virtual ~AsyncAnswer() = default;
  virtual void give(std::exception_ptr error, AppendResult result) noexcept = 0;
};

/// A function that is run, and whoever is told how it ended.
class AsyncWork {
 public:
  virtual ~AsyncWork() = default;
  /// Calls the function, and keeps what it returns or throws.
  virtual void run() noexcept = 0;
  /// Gives the answer: what was kept, unless `refusal` is set because the function didn't run.
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

/// Makes appends to a store, and runs functions that use it, on threads of an executor that the
/// caller brings. It starts no thread. Calls return at once, whatever the store is busy with.
///
/// Appends are made in the order of the calls, many in one commit, together with those of threads
/// that append themselves. One that fails stops nothing after it. An append is answered after it
/// is durable, with what `Store::append` would have returned or thrown. Listeners of `on_commit`
/// and participants of the store run on the executor, with the context of the append.
///
/// The store and the executor must outlive this object. If the executor stops, calls that it hasn't
/// begun wait for the destructor, which answers them. In a forked child every call fails with
/// UsageError, and the copy may be destroyed.
/// Threads: any number at once; the destructor when no call runs any more.
class STELA_EVENTSTORE_EXPORT AsyncStore {
 public:
  using Task = std::function<void()>;
  /// Lets a thread that may block call the function, which doesn't throw, later: not before `Post`
  /// has returned. It may throw for work, which fails then, but not for an answer: the process
  /// would end.
  using Post = std::function<void(Task)>;

  /// UsageError if an option is out of range, or if there is no `post`.
  AsyncStore(Store& store, Post post, const AsyncOptions& options = {});
  /// Accepts nothing more. Calls that haven't begun fail with Cancelled; it waits for the others.
  /// Not on a thread that is in the middle of one.
  ~AsyncStore();
  AsyncStore(const AsyncStore&) = delete;
  AsyncStore& operator=(const AsyncStore&) = delete;

  /// Calls `done(std::exception_ptr, AppendResult)` once, when the append has ended. That may be on
  /// any thread, also before this returns: it must neither block, nor call a store, nor throw.
  template <class Done>
  requires std::invocable<Done&, std::exception_ptr, AppendResult>
  void append(OwnedAppend request, Done done, const AsyncCall& call = {}) {
    start(std::move(request), std::make_unique<detail::AsyncAnswerTo<Done>>(std::move(done)), call);
  }

  /// Calls `f()` on a thread of the executor, in the context of this call, and then
  /// `done(std::exception_ptr, what it returned)`, as `append` does. Without a result,
  /// `done(std::exception_ptr)`. The functions run in any order, and beside appends.
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

  /// How many calls are under way.
  std::size_t in_flight() const;

 private:
  class State;

  void start(OwnedAppend request, std::unique_ptr<detail::AsyncAnswer> answer,
             const AsyncCall& call);
  void start(std::unique_ptr<detail::AsyncWork> work, const AsyncCall& call);

  /// Shared with what was posted, which may be called after this object is gone.
  std::shared_ptr<State> state_;
};

}  // namespace stela
