// What happens to builds whose handlers fail: attempts, back-off, stops and parked events.
#pragma once

#include "builds.hpp"
#include "follow/backoff.hpp"
#include "follow/blame.hpp"
#include "seat.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/stored_event.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::projections {

/// Counts of a feed since its creation.
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

/// What is said of an event or a timer of an unknown version, while it waits.
inline constexpr const char* waits_for_newer = "; it waits for a runner that knows it";

/// Uncounted attempts have no end, so they need a pause.
inline constexpr std::chrono::milliseconds least_pause{1'000};

/// An event that can't be handled.
struct Failure {
  std::int64_t sequence = 0;
  std::string error = {};
  follow::Blame blame = follow::Blame::handler;
  /// The event's instance of the process, if known.
  std::optional<std::string> instance = {};
};

/// A failure for an event version that this release doesn't know.
Failure unknown_at(const StoredEvent& event);
/// The failure of the event's handler.
Failure failure_at(const StoredEvent& event, const follow::Fault& fault);

/// Runs a transaction of handlers, in which they may throw RollBack. Returns an error that ends it
/// and isn't the fault of one event; nothing if it was committed or rolled back.
std::optional<std::string> error_of(FunctionRef<void()> transaction);

/// The back-off between attempts of a projector's handler.
follow::Backoff backoff_of(const ProjectorOptions& options, bool is_counted = true);

/// Keeps the row of a build consistent with its seat: a failure's changes to both are written in
/// one transaction, if the lease still holds. Threads: those of the seat.
class Failures {
 public:
  /// With `unknown_version_wait`, a build is released and waits that long for a runner that knows
  /// the version of an event; without it, an unknown version is a failure like any other. `counts`
  /// must outlive it.
  Failures(Store& store, std::chrono::milliseconds lease_ttl,
           std::optional<std::chrono::milliseconds> unknown_version_wait,
           FeedCounts& counts) noexcept
      : store_{store},
        lease_ttl_{lease_ttl},
        unknown_version_wait_{unknown_version_wait},
        counts_{counts} {}

  /// The event after the seat's position failed: it is retried later, stops the build or is parked,
  /// or the build is left to a runner that knows its version.
  void note(Seat& seat, const Failure& failure);
  /// A parked event failed again and stays parked.
  void park_again(Seat& seat, const Failure& failure, int attempts);
  /// Stops the build with an error that isn't the fault of an event.
  void stop(Seat& seat, const std::string& error);

 private:
  void note_unknown(Seat& seat, Failure failure);
  void note_counted(Seat& seat, const Failure& failure);
  void leave_to_newer(Seat& seat, const Failure& failure, Timestamp until);
  /// It had stopped because of a version that this runner doesn't know either.
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
