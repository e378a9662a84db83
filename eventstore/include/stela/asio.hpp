// A store in a Boost.Asio program: coroutines, futures and callbacks instead of blocking calls.
#pragma once

#include <stela/eventstore/async.hpp>

#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/is_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <type_traits>

namespace stela {
namespace detail {

/// The executor type of a handler that has none.
struct NoExecutor {};

/// A future's handler runs no user code, so it needs no thread. If it were posted to its own
/// executor, Boost.Asio would start threads for the whole process.
template <class Token>
inline constexpr bool is_future = false;
template <class Allocator>
inline constexpr bool is_future<boost::asio::use_future_t<Allocator>> = true;

template <class E>
concept AsioExecutor =
    boost::asio::is_executor<E>::value || boost::asio::execution::is_executor<E>::value;

template <class E>
AsyncStore::Post post_on(E& executor) {
  using Executor = std::remove_const_t<E>;
  if constexpr (AsioExecutor<Executor>) {
    return [executor](AsyncStore::Task task) { boost::asio::post(executor, std::move(task)); };
  } else if constexpr (requires { executor.get_executor(); }) {
    const auto own = executor.get_executor();
    return post_on(own);
  } else {
    static_assert(
        requires(AsyncStore::Task task) { executor.execute(task); },
        "stela: an executor has execute(fn), or is one of Boost.Asio's");
    return [&executor](AsyncStore::Task task) { executor.execute(std::move(task)); };
  }
}

/// Posts a handler to its associated executor, or to the store's if it has none. Until then, that
/// executor has outstanding work, so its context keeps running.
template <class Token, class Handler, class... Results>
class AsioDone {
 public:
  AsioDone(Handler handler, const AsyncStore::Post& post)
      : handler_{std::move(handler)}, place_{make_place(handler_, post)} {}

  void operator()(std::exception_ptr error, Results... results) {
    if constexpr (is_future<Token>) {
      handler_(std::move(error), std::move(results)...);
    } else {
      post(std::move(error), std::move(results)...);
    }
  }

 private:
  void post(std::exception_ptr error, Results... results) {
    auto call = [handler = std::move(handler_), error = std::move(error),
                 ... results = std::move(results)]() mutable {
      handler(std::move(error), std::move(results)...);
    };
    if constexpr (has_executor) {
      boost::asio::post(place_.get_executor(), std::move(call));
      place_.reset();
    } else {
      place_([kept = std::make_shared<decltype(call)>(std::move(call))] { (*kept)(); });
    }
  }

  using Associated = boost::asio::associated_executor<Handler, NoExecutor>;
  static constexpr bool has_executor = !std::same_as<typename Associated::type, NoExecutor>;

  static auto make_place(const Handler& handler, const AsyncStore::Post& post) {
    if constexpr (is_future<Token>) {
      return NoExecutor{};
    } else if constexpr (has_executor) {
      return boost::asio::make_work_guard(Associated::get(handler, NoExecutor{}));
    } else {
      return post;
    }
  }

  Handler handler_;
  decltype(make_place(std::declval<const Handler&>(),
                      std::declval<const AsyncStore::Post&>())) place_;
};

}  // namespace detail

/// An AsyncStore with the interface of Boost.Asio's operations. The completion token
/// (`use_awaitable`, `use_future`, a function) decides how the result arrives; its signature is
/// `void(std::exception_ptr, AppendResult)`. The handler is posted to its associated executor,
/// whose context keeps running until then. A handler without one is posted to the store's executor,
/// which must run it: a pool that is stopped, or ends without `join()`, drops it. The handler is
/// never called before the call has returned.
///
///     boost::asio::thread_pool threads{4};
///     stela::Async async{store, threads};
///     const stela::AppendResult placed = co_await async.append(request, use_awaitable);
///
/// Threads: as AsyncStore.
class Async {
 public:
  /// `executor` is a Boost.Asio executor, a context that has one (a `thread_pool`), or an object
  /// with `execute(fn)`, which must outlive this one. Its threads may block: it isn't the event
  /// loop.
  template <class E>
  Async(Store& store, E&& executor, const AsyncOptions& options = {})
      : post_{detail::post_on(executor)}, store_{store, post_, options} {
    static_assert(std::is_lvalue_reference_v<E> || detail::AsioExecutor<std::remove_cvref_t<E>>,
                  "stela: the executor must outlive this object; give it a name");
  }

  /// Copies the request at once; it needn't live until a coroutine awaits the append.
  template <class Token>
  auto append(const AppendRequest& request, const AsyncCall& call, Token&& token) {
    return boost::asio::async_initiate<Token, void(std::exception_ptr, AppendResult)>(
        [this](auto handler, OwnedAppend owned, AsyncCall how) {
          using Done = detail::AsioDone<std::decay_t<Token>, decltype(handler), AppendResult>;
          store_.append(std::move(owned), Done{std::move(handler), post_}, how);
        },
        token, OwnedAppend{request}, call);
  }
  template <class Token>
  auto append(const AppendRequest& request, Token&& token) {
    return append(request, AsyncCall{}, std::forward<Token>(token));
  }

  /// Calls `f()` on the store's executor: code that loads, decides, saves, reads or waits. The
  /// context of the calling thread, or that of `call`, goes along. The token's signature carries
  /// the result of `f`: `void(std::exception_ptr, T)`, or `void(std::exception_ptr)`.
  template <class F, class Token>
  auto run(F&& f, const AsyncCall& call, Token&& token) {
    using Function = std::decay_t<F>;
    using Result = std::invoke_result_t<Function&>;
    Context context = call.context != nullptr ? *call.context : current_context();
    if constexpr (std::is_void_v<Result>) {
      return initiate_run<void(std::exception_ptr)>(Function{std::forward<F>(f)}, call,
                                                    std::move(context), token);
    } else {
      return initiate_run<void(std::exception_ptr, Result), Result>(
          Function{std::forward<F>(f)}, call, std::move(context), token);
    }
  }
  template <class F, class Token>
  auto run(F&& f, Token&& token) {
    return run(std::forward<F>(f), AsyncCall{}, std::forward<Token>(token));
  }

  std::size_t in_flight() const { return store_.in_flight(); }

 private:
  template <class Signature, class... Results, class F, class Token>
  auto initiate_run(F f, const AsyncCall& call, Context context, Token& token) {
    return boost::asio::async_initiate<Token, Signature>(
        [this](auto handler, F function, AsyncCall how, Context in) {
          using Done = detail::AsioDone<std::decay_t<Token>, decltype(handler), Results...>;
          how.context = &in;
          store_.run(std::move(function), Done{std::move(handler), post_}, how);
        },
        token, std::move(f), call, std::move(context));
  }

  const AsyncStore::Post post_;
  AsyncStore store_;
};

}  // namespace stela
