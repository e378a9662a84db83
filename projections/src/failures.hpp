// What becomes of builds whose handlers fail: attempts, back-off, stops and parked events.
#pragma once

#include "builds.hpp"
#include "follow/backoff.hpp"
#include "follow/blame.hpp"
#include "seat.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/stored_event.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::projections {

/// What a feed did since it was made.
struct FeedCounts {
  std::int64_t scanned = 0;
  std::int64_t commits = 0;
  std::int64_t failed = 0;
  std::int64_t stopped = 0;
  std::int64_t parked = 0;
  std::int64_t left_to_newer = 0;
  std::int64_t timers_fired = 0;
  std::int64_t timers_failed = 0;
  std::int64_t timers_parked = 0;
};

/// An event that couldn't be handled.
struct Failure {
  std::int64_t sequence = 0;
  std::string error = {};
  follow::Blame blame = follow::Blame::handler;
  /// The instance of a process that the event belongs to, if that is known.
  std::optional<std::string> instance = {};
};

/// An event of a version that this release doesn't know.
Failure unknown_at(const StoredEvent& event);
/// What the handler of the event failed with.
Failure failure_at(const StoredEvent& event, const follow::Fault& fault);

/// Between the attempts of a projector's handler. Those that aren't counted have no end, so there
/// must be a pause.
follow::Backoff backoff_of(const ProjectorOptions& options, bool is_counted = true);

/// Keeps the row of a build and its seat the same: what a failure changes in both, it writes in one
/// transaction, if the lease still holds. Threads: those of the seat.
class Failures {
 public:
  /// With `unknown_version_wait` a build waits so long for a runner that knows the version of an
  /// event, and is given back; otherwise that is a failure like others. `counts` must outlive it.
  Failures(Store& store, std::chrono::milliseconds lease_ttl,
           std::optional<std::chrono::milliseconds> unknown_version_wait,
           FeedCounts& counts) noexcept
      : store_{store},
        lease_ttl_{lease_ttl},
        unknown_version_wait_{unknown_version_wait},
        counts_{counts} {}

  /// The event that the seat stands before failed: it is tried again later, stops the build or is
  /// parked, or the build is left to a runner that knows its version.
  void note(Seat& seat, const Failure& failure);
  /// A parked event that was tried again stays parked.
  void park_again(Seat& seat, const Failure& failure, int attempts);
  /// Halts the build with an error that no event is to blame for.
  void stop(Seat& seat, const std::string& error);

 private:
  void note_unknown(Seat& seat, Failure failure);
  void note_counted(Seat& seat, const Failure& failure);
  void leave_to_newer(Seat& seat, const Failure& failure, Timestamp until);
  /// It had stopped for a version that this runner doesn't know either.
  void keep_stopped(Seat& seat);
  void park(database::Connection& connection, const Build& build, const Failure& failure,
            int attempts) const;
  void log(const Seat& seat, const Failure& failure, std::string_view name,
           LogLevel level = LogLevel::error) const;

  Store& store_;
  const std::chrono::milliseconds lease_ttl_;
  const std::optional<std::chrono::milliseconds> unknown_version_wait_;
  FeedCounts& counts_;
};

}  // namespace stela::projections
