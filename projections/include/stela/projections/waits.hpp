// Waits for projectors without a thread for each caller. For Boost.Asio, include
// <stela/projections/asio.hpp>.
#pragma once

#include <stela/eventstore/async.hpp>
#include <stela/projections/projections.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace stela {

struct WaitsOptions {
  /// How many callers may wait at once: at least 1.
  std::size_t waiting = 65'536;
};

/// `Projections::wait_for` for any number of concurrent callers, on the threads of an executor that
/// the user provides. It starts no thread. While callers wait, a thread of the executor looks for
/// all of them with one statement: when a runner of the same `Projections` has advanced, when a
/// caller arrives, at a deadline, and otherwise every 1 to 20 ms. Between looks it uses no thread.
/// There is only one look at a time: if the database delays it, by a lock or because its server
/// hangs, callers whose time is up wait until it ends.
///
/// The projections and the executor must outlive this object. If the executor stops, callers wait
/// until the destructor answers them. In a forked child every wait fails with UsageError, but the
/// copy can be destroyed safely.
/// Threads: any number at once; the destructor only when no call is running.
class STELA_PROJECTIONS_EXPORT ProjectionWaits {
 public:
  using Task = AsyncStore::Task;
  using Post = AsyncStore::Post;
  /// Like `Post`, but not before this time has passed.
  using PostAfter = std::function<void(std::chrono::nanoseconds, Task)>;
  using Done = std::function<void(std::exception_ptr, bool)>;

  /// UsageError if an option is out of range, or if `post` or `post_after` is missing.
  ProjectionWaits(Projections& projections, Post post, PostAfter post_after,
                  const WaitsOptions& options = {});
  /// Answers remaining callers with Cancelled. Don't call it on a thread that is in the middle of a
  /// look.
  ~ProjectionWaits();
  ProjectionWaits(const ProjectionWaits&) = delete;
  ProjectionWaits& operator=(const ProjectionWaits&) = delete;

  /// Calls `done` once, with the result or exception of `Projections::wait_for`; with Cancelled if
  /// `stop` is requested before that, and with StoreBusy if too many callers wait. `done` may be
  /// called on any thread, even before this returns: it must not block, call a store or throw. The
  /// timeout begins now.
  void wait_for(std::string projector, GlobalSequence sequence, std::chrono::milliseconds timeout,
                Done done, const std::stop_token& stop = {});

  /// How many callers are waiting.
  std::size_t waiting() const;

 private:
  class State;

  /// Shared with posted tasks, which may run after this object is gone.
  std::shared_ptr<State> state_;
};

}  // namespace stela
