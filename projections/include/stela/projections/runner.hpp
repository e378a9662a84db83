// Drives projectors and reactions through the events of a store, and follows it.
#pragma once

#include <stela/projections/projections.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace stela {

struct RunnerOptions {
  /// Which projectors and reactions it drives; all that are registered unless given.
  std::vector<std::string> projectors = {};
  /// The runner's name; empty makes one of host, process and a random part.
  std::string worker = {};
  /// A runner that was silent for this long has lost its projectors to others.
  std::chrono::milliseconds lease_ttl{15'000};
  /// How long to wait before looking again when there was nothing and nobody woke the runner.
  std::chrono::milliseconds idle_backoff{1'000};
  /// For how long the tables of a version stay after the next one has taken over.
  std::chrono::milliseconds drop_after{600'000};
};

/// A projector that another runner drives.
struct DrivenElsewhere {
  std::string projector = {};
  /// The name of that runner; empty if it took the projector while this one was at it.
  std::string worker = {};
};

/// What a runner did since it last said so, and how its projectors stand.
struct RunnerTick {
  /// Events that were read, each of them once for all the projectors that stood at it.
  std::int64_t scanned = 0;
  /// Checkpoints that moved.
  std::int64_t commits = 0;
  /// Failures of handlers; and what came of those that were the last ones allowed.
  std::int64_t failed = 0;
  std::int64_t halted = 0;
  std::int64_t parked = 0;
  /// New versions that took over.
  std::int64_t taken_over = 0;
  /// How many projectors this runner drives now, and how many others have.
  std::int64_t owned_count = 0;
  std::int64_t elsewhere_count = 0;
  /// The latter by name: this runner did nothing for them.
  std::vector<DrivenElsewhere> elsewhere = {};
};

/// Keeps the registered projectors up with the store: their rows and their checkpoint commit
/// together, and one runner at a time drives each, by a lease. Projectors that stand at the same
/// event share one pass.
/// Threads: one at a time. It starts no thread. Any number of runners, in any number of processes.
class STELA_PROJECTIONS_EXPORT Runner {
 public:
  /// UsageError if an option is out of range or names a projector that isn't registered.
  /// `projections` must outlive the runner.
  explicit Runner(Projections& projections, const RunnerOptions& options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Projects everything that is committed now, and what is appended meanwhile, by reactions above
  /// all; then hands everything back. It doesn't return while a reaction feeds itself, or others
  /// append faster than it projects. What fails is tried once and then left to the next call that
  /// comes after its back-off. What another runner has is left to it, however far behind that is:
  /// `elsewhere` names it.
  RunnerTick catch_up();

  /// Projects until `stop` is requested; then hands everything over. A commit of this process wakes
  /// it at once, one of another process within milliseconds. Throws what makes the store unusable.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, after whatever it did and at least once in each idle_backoff.
  void on_tick(std::function<void(const RunnerTick&)> listener);

  /// The name under which it holds projectors.
  const std::string& worker() const noexcept;

 private:
  class Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace stela
