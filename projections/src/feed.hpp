// Projects events into builds: rows and checkpoint commit together, and failures are recorded.
#pragma once

#include "database/event_page.hpp"
#include "database/event_reader.hpp"
#include "failures.hpp"
#include "scan.hpp"
#include "seat.hpp"
#include "timer_clock.hpp"
#include "timer_rows.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/error.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace stela::projections {

/// Another process has taken the build.
class LeaseLost final : public StoreBusy {
 public:
  using StoreBusy::StoreBusy;
};

/// The next event has a version that only another release knows.
class VersionUnknown final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Threads: one at a time.
class Feed {
 public:
  /// See Failures for `unknown_version_wait`.
  Feed(Store& store, std::chrono::milliseconds lease_ttl,
       std::optional<std::chrono::milliseconds> unknown_version_wait = {}) noexcept
      : store_{store},
        lease_ttl_{lease_ttl},
        unknown_version_wait_{unknown_version_wait},
        failures_{store, lease_ttl, unknown_version_wait, counts_} {}
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Takes the `seats` that are at the beginning of the batch to its end. A seat whose handler
  /// throws stays before that event, and the failure is recorded, without counting an attempt if
  /// memory was short. A seat that doesn't know an event's version is left to others for a time. A
  /// seat that another process has taken is no longer held. Throws if the store fails.
  void project(std::span<Seat* const> seats, const Batch& batch);

  /// The same for one seat on a connection with an open transaction. Failures are thrown: LeaseLost
  /// if another process has the lease, VersionUnknown if the event isn't for this release. Errors
  /// that handlers caught remain in the seat, for the caller to report after the commit.
  void project_inside(database::Connection& connection, Seat& seat, const Batch& batch);

  /// Projects a parked event by itself, and unparks it on success.
  void project_parked(Seat& seat, std::int64_t sequence, int attempts);

  /// Fires due timers of a process in batches for a short time, if it has handled every event. True
  /// if there is more to do at once: timers, or events that were committed meanwhile.
  bool fire(Seat& seat, TimerClock& clock);

  /// Stops a seat with an error that isn't the fault of an event.
  void stop(Seat& seat, const std::string& error) { failures_.stop(seat, error); }

  const FeedCounts& counts() const noexcept { return counts_; }

 private:
  struct Outcome {
    std::optional<Failure> failure = {};
    bool lost = false;
    /// An error that isn't the fault of an event.
    std::optional<std::string> error = {};

    bool is_good() const noexcept { return !failure && !lost && !error; }
  };

  /// The event's instance; unset if the process fails to name it.
  static std::optional<std::string> instance_of(Seat& seat, const StoredEvent& event);
  void react(Seat& seat, const Batch& batch);
  std::vector<Outcome> run(std::span<Seat* const> seats, const Batch& batch);
  Outcome run_reaction(Seat& seat, const Batch& batch);
  Outcome handle(database::Connection& connection, Seat& seat, const Batch& batch);
  std::optional<Failure> project_events(database::Connection& connection, Seat& seat,
                                        std::span<const StoredEvent> events);
  std::optional<Failure> attempt_events(const database::Connection& connection, Seat& seat,
                                        std::span<const StoredEvent> events);
  std::optional<Failure> react_to(Seat& seat, Transaction& transaction,
                                  std::span<const StoredEvent> events);
  /// The results of a transaction of timers.
  struct Firing {
    std::int64_t fired = 0;
    std::int64_t failed = 0;
    std::int64_t parked = 0;
    /// The new position of the process; 0 if the transaction was rolled back.
    std::int64_t position = 0;
    bool lost = false;
    bool is_more = false;
    /// Instances whose events the timers recorded: their consequences come before their next
    /// timers.
    std::set<std::string> touched = {};
    /// No more timers may fire before those events are handled and new timers are read.
    bool must_end = false;
    /// The timer whose handler ended the transaction.
    std::optional<Timer> broke_with = {};
    /// A timer needs a version that only another release knows: the process is left for a moment to
    /// a runner of that release.
    bool leaves = false;
  };
  /// A timer is postponed if memory was short, and left if it needs another release. Neither counts
  /// as an attempt.
  enum class Fired : std::uint8_t { fired, gone, failed, postponed, left };

  /// Fires one batch.
  Firing fire_once(Seat& seat, TimerClock& clock);
  void fire_batch(Seat& seat, TimerClock& clock, Transaction& transaction, Firing& firing);
  bool catch_up_inside(Seat& seat, Transaction& transaction, std::int64_t head);
  void fire_timers(Seat& seat, Timestamp now, Transaction& transaction, Firing& firing);
  Fired fire_one(Seat& seat, Timer& timer, Timestamp now, Transaction& transaction, Firing& firing);
  Fired fire_despite_conflicts(Seat& seat, const Timer& timer, Timestamp now,
                               Transaction& transaction, Firing& firing);
  Fired try_fire(Seat& seat, const Timer& timer, Timestamp now, Transaction& transaction,
                 Firing& firing);
  /// Whether the process handles any of the events that the unit would append.
  static bool records_for(Seat& seat, UnitOfWork& unit);
  void note_recorded(Seat& seat, database::Connection& connection, const AppendResult& appended,
                     Firing& firing);
  void note_timer(Seat& seat, Timer& timer, database::Connection& connection, Timestamp now);
  void settle_timers(Seat& seat, const Firing& firing);
  void log_timer(const Timer& timer) const;

  /// Moves the checkpoint, if every lease that this needs is still held.
  bool move(database::Connection& connection, const Seat& seat, std::int64_t position) const;
  void settle(Seat& seat, const Outcome& outcome, const Batch& batch);
  Timestamp lease_until() const;

  Store& store_;
  const std::chrono::milliseconds lease_ttl_;
  const std::optional<std::chrono::milliseconds> unknown_version_wait_;
  FeedCounts counts_;
  Failures failures_;
  /// Reads events inside a transaction of timers.
  std::unique_ptr<database::EventReader> reader_;
  EventPage page_;
  /// How many timers are read for the next transaction, adapted to how many the last one managed.
  int timers_a_batch_ = 16;
};

}  // namespace stela::projections
