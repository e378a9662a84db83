// Waits for projectors in a Boost.Asio program.
#pragma once

#include <stela/asio.hpp>
#include <stela/projections/waits.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stela {
namespace detail {

template <class E>
ProjectionWaits::PostAfter post_after_on(E& executor) {
  using Executor = std::remove_const_t<E>;
  if constexpr (AsioExecutor<Executor>) {
    using Clock = std::chrono::steady_clock;
    using Timer =
        boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;
    return [executor](std::chrono::nanoseconds delay, AsyncStore::Task task) {
      auto timer = std::make_shared<Timer>(executor, delay);
      Timer& waiting = *timer;
      waiting.async_wait([timer = std::move(timer),
                          task = std::move(task)](const boost::system::error_code& error) {
        if (!error) task();
      });
    };
  } else {
    static_assert(
        requires { executor.get_executor(); },
        "stela: an executor with timers is one of Boost.Asio's; ProjectionWaits takes others");
    const auto own = executor.get_executor();
    return post_after_on(own);
  }
}

}  // namespace detail

/// A ProjectionWaits as asynchronous operations of Boost.Asio, with the signature
/// `void(std::exception_ptr, bool)`. The handler is posted to its associated executor, as with
/// `Async`.
///
///     stela::AsyncProjections models{projections, threads};
///     if (!co_await models.wait_for("orders", placed.last, 2s, use_awaitable)) { … }
///
/// Threads: see ProjectionWaits.
class AsyncProjections {
 public:
  /// `executor` is a Boost.Asio executor, or a context that has one (a `thread_pool`), and must
  /// outlive this object. Its threads may be blocked, so it mustn't be the event loop.
  template <class E>
  AsyncProjections(Projections& projections, E&& executor, const WaitsOptions& options = {})
      : post_{detail::post_on(executor)},
        waits_{projections, post_, detail::post_after_on(executor), options} {
    static_assert(std::is_lvalue_reference_v<E> || detail::AsioExecutor<std::remove_cvref_t<E>>,
                  "stela: the executor must outlive this object; give it a name");
  }

  /// True once the model that readers see contains everything up to `sequence`; false after the
  /// timeout, or if the projector is stopped before `sequence`. The timeout begins when a coroutine
  /// awaits it. A look that the database delays is finished first, see ProjectionWaits.
  template <class Token>
  auto wait_for(std::string_view projector, GlobalSequence sequence,
                std::chrono::milliseconds timeout, std::stop_token stop, Token&& token) {
    return boost::asio::async_initiate<Token, void(std::exception_ptr, bool)>(
        [this, sequence, timeout](auto handler, std::string name, const std::stop_token& until) {
          using Done = detail::AsioDone<std::decay_t<Token>, decltype(handler), bool>;
          auto done = std::make_shared<Done>(std::move(handler), post_);
          waits_.wait_for(
              std::move(name), sequence, timeout,
              [done = std::move(done)](std::exception_ptr error, bool is_there) {
                (*done)(std::move(error), is_there);
              },
              until);
        },
        token, std::string{projector}, std::move(stop));
  }
  template <class Token>
  auto wait_for(std::string_view projector, GlobalSequence sequence,
                std::chrono::milliseconds timeout, Token&& token) {
    return wait_for(projector, sequence, timeout, std::stop_token{}, std::forward<Token>(token));
  }

  std::size_t waiting() const { return waits_.waiting(); }

 private:
  const AsyncStore::Post post_;
  ProjectionWaits waits_;
};

}  // namespace stela
