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

/// What `Projections::wait_for` does, for any number of callers at once on the threads of an
/// executor that the caller brings. It starts no thread. While somebody waits, a thread of the
/// executor looks for all of them by one statement: when a runner of the same `Projections` has
/// moved, when somebody comes, at a deadline, and otherwise every 1 to 20 ms. Between the looks it
/// needs none. There is one look at a time: one that the database keeps waiting, for a lock or
/// because its server hangs, lets those whose time is up wait until it ends, too.
///
/// The projections and the executor must outlive this object. If the executor stops, callers wait
/// for the destructor, which answers them. In a forked child every wait fails with UsageError, and
/// the copy may be destroyed.
/// Threads: any number at once; the destructor when no call runs any more.
class STELA_PROJECTIONS_EXPORT ProjectionWaits {
 public:
  using Task = AsyncStore::Task;
  using Post = AsyncStore::Post;
  /// As `Post`, and not before so much time has passed.
  using PostAfter = std::function<void(std::chrono::nanoseconds, Task)>;
  using Done = std::function<void(std::exception_ptr, bool)>;

  /// UsageError if an option is out of range, or if there is no `post` or `post_after`.
  ProjectionWaits(Projections& projections, Post post, PostAfter post_after,
                  const WaitsOptions& options = {});
  /// Who still waits is answered with Cancelled. Not on a thread that is in the middle of a look.
  ~ProjectionWaits();
  ProjectionWaits(const ProjectionWaits&) = delete;
  ProjectionWaits& operator=(const ProjectionWaits&) = delete;

  /// Calls `done` once, with what `Projections::wait_for` would have returned or thrown; with
  /// Cancelled if `stop` is requested before that, and with StoreBusy if too many wait. That may be
  /// on any thread, also before this returns: it must neither block, nor call a store, nor throw.
  /// The timeout begins now.
  void wait_for(std::string projector, GlobalSequence sequence, std::chrono::milliseconds timeout,
                Done done, const std::stop_token& stop = {});

  /// How many callers wait.
  std::size_t waiting() const;

 private:
  class State;

  /// Shared with what was posted, which may be called after this object is gone.
  std::shared_ptr<State> state_;
};

}  // namespace stela
