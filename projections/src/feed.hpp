// Takes builds through events: rows and checkpoint in one transaction, failures noted.
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

/// Another process has taken the build meanwhile.
class LeaseLost final : public StoreBusy {
 public:
  using StoreBusy::StoreBusy;
};

/// An event of a version that only another release knows is in the way.
class VersionUnknown final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Threads: one at a time.
class Feed {
 public:
  /// `unknown_version_wait` as Failures says.
  Feed(Store& store, std::chrono::milliseconds lease_ttl,
       std::optional<std::chrono::milliseconds> unknown_version_wait = {}) noexcept
      : store_{store},
        lease_ttl_{lease_ttl},
        unknown_version_wait_{unknown_version_wait},
        failures_{store, lease_ttl, unknown_version_wait, counts_} {}
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Takes those `seats` that stand where the batch begins to its end. One whose handler throws
  /// stays before that event, and the failure is noted, without an attempt if it was short of
  /// memory. One that doesn't know an event's version is left to others for a time. One that
  /// another process has taken is no longer held. Throws if the store fails.
  void project(std::span<Seat* const> seats, const Batch& batch);

  /// The same on a connection whose transaction is open, for one seat; what fails is thrown,
  /// LeaseLost if another process has the lease, VersionUnknown if the event isn't for this
  /// release. What handlers caught is left in the seat, for the caller to report after the commit.
  void project_inside(database::Connection& connection, Seat& seat, const Batch& batch);

  /// Projects a parked event by itself, and takes it out of what is parked if that works.
  void project_parked(Seat& seat, std::int64_t sequence, int attempts);

  /// Fires timers of a process that are due, batch after batch for a short time, if it has handled
  /// every event. True if there is more to do at once: timers, or events that were committed
  /// meanwhile.
  bool fire(Seat& seat, TimerClock& clock);

  /// Halts a seat with an error that no event is to blame for.
  void stop(Seat& seat, const std::string& error) { failures_.stop(seat, error); }

  const FeedCounts& counts() const noexcept { return counts_; }

 private:
  struct Outcome {
    std::optional<Failure> failure = {};
    bool lost = false;
    /// What no event is to blame for.
    std::optional<std::string> error = {};

    bool is_good() const noexcept { return !failure && !lost && !error; }
  };

  /// The instance that the event belongs to; nothing if it doesn't say.
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
  /// What a transaction of timers came to.
  struct Firing {
    std::int64_t fired = 0;
    std::int64_t failed = 0;
    std::int64_t parked = 0;
    /// Where the process stands afterwards; 0 if the transaction was rolled back.
    std::int64_t position = 0;
    bool lost = false;
    bool is_more = false;
    /// Instances of the process whose events the timers recorded: what these lead to comes before
    /// their next timers.
    std::set<std::string> touched = {};
    /// Nothing more may fire before those events are handled, and what was set is read.
    bool must_end = false;
    /// The timer whose handler ended the transaction.
    std::optional<Timer> broke_with = {};
    /// A timer needs a version that only another release knows: the process is left to a runner of
    /// that for a moment.
    bool leaves = false;
  };
  /// A timer is postponed if memory was short, and left if it needs another release: the attempt
  /// isn't counted.
  enum class Fired : std::uint8_t { fired, gone, failed, postponed, left };

  /// One batch.
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

  /// Moves the checkpoint, if every lease is still held that this takes.
  bool move(database::Connection& connection, const Seat& seat, std::int64_t position) const;
  void settle(Seat& seat, const Outcome& outcome, const Batch& batch);
  Timestamp lease_until() const;

  Store& store_;
  const std::chrono::milliseconds lease_ttl_;
  const std::optional<std::chrono::milliseconds> unknown_version_wait_;
  FeedCounts counts_;
  Failures failures_;
  /// For events inside a transaction of timers.
  std::unique_ptr<database::EventReader> reader_;
  EventPage page_;
  /// How many timers are read for the next transaction: it follows what the last one had time for.
  int timers_a_batch_ = 16;
};

}  // namespace stela::projections
