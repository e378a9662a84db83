// Follows the events of a store to drive projectors and reactions.
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
  /// The projectors and reactions to drive; empty: all registered ones.
  std::vector<std::string> projectors = {};
  /// The runner's name. Empty: composed of host, process and a random part.
  std::string worker = {};
  /// A runner that doesn't renew its leases for this long loses its projectors to other runners. A
  /// runner that is seen to have ended loses them at once. Values may differ between runners.
  std::chrono::milliseconds lease_ttl{15'000};
  /// How long an idle runner waits before it looks again, unless a commit wakes it.
  std::chrono::milliseconds idle_backoff{1'000};
  /// How long the tables of an old version are kept after the next one has taken over.
  std::chrono::milliseconds drop_after{600'000};
  /// A forward jump of the clock by more than this holds timers until the new time has lasted this
  /// long.
  std::chrono::milliseconds clock_jump_limit{600'000};
  /// An event version that this runner doesn't know isn't a failure: its projector is left to a
  /// runner that knows it. If none takes over within this time, at most a year, the projector stops
  /// or parks the event as after the last attempt. If it stopped for this reason, a later runner
  /// that knows the version continues it.
  std::chrono::milliseconds unknown_version_wait{3'600'000};
};

/// A projector that another runner drives.
struct DrivenElsewhere {
  std::string projector = {};
  /// The name of that runner; empty if it took the projector over from this one meanwhile.
  std::string worker = {};
};

/// What a runner did since its last report, and the state of its projectors.
struct RunnerTick {
  /// Events read; each counts once for all projectors at the same position.
  std::int64_t scanned = 0;
  /// Checkpoints that moved.
  std::int64_t commits = 0;
  /// Handler failures, and the outcomes of last attempts.
  std::int64_t failed = 0;
  std::int64_t stopped = 0;
  std::int64_t parked = 0;
  /// Projectors left to runners that know the version of an event.
  std::int64_t left_to_newer = 0;
  /// New versions that took over.
  std::int64_t taken_over = 0;
  /// Timers that fired, that failed once more, and that were parked after the last attempt.
  std::int64_t timers_fired = 0;
  std::int64_t timers_failed = 0;
  std::int64_t timers_parked = 0;
  /// How many projectors this runner drives now, and how many other runners drive.
  std::int64_t owned_count = 0;
  std::int64_t elsewhere_count = 0;
  /// The projectors of other runners, by name. This runner did nothing for them.
  std::vector<DrivenElsewhere> elsewhere = {};
};

/// Keeps the registered projectors up to date with the store. Their rows and their checkpoint
/// commit together. A lease ensures that one runner at a time drives each projector. Projectors at
/// the same position share one pass over the events. Threads: one at a time. It starts no thread.
/// Any number of runners, in any number of processes.
class STELA_PROJECTIONS_EXPORT Runner {
 public:
  /// UsageError if an option is out of range or names a projector that isn't registered.
  /// `projections` must outlive the runner.
  explicit Runner(Projections& projections, const RunnerOptions& options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Projects all committed events and those appended meanwhile, especially by reactions, then
  /// releases all projectors. It doesn't return while a reaction triggers itself endlessly, or
  /// while other writers append faster than it projects. An event that fails is tried once; a later
  /// call tries it again after its back-off. Projectors of other runners are left to them, even if
  /// far behind: `elsewhere` names them.
  RunnerTick run_once();

  /// Projects until `stop` is requested, then hands all projectors over. A commit of this process
  /// wakes it at once, a commit of another process within milliseconds. Throws errors that make the
  /// store unusable.
  void run(std::stop_token stop);

  /// Called by `run`, on its thread, after each pass that did something, and at least once in each
  /// idle_backoff.
  void on_tick(std::function<void(const RunnerTick&)> listener);

  /// The name under which it holds leases.
  const std::string& worker() const noexcept;

 private:
  class Driver;
  std::unique_ptr<Driver> driver_;
};

}  // namespace stela
