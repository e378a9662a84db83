// The store's time without jumps, for timers.
#pragma once

#include "timer_rows.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/clock.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace stela::projections {

/// Compares the store's clock with the steady one. A jump forward beyond the limit holds timers
/// until it has lasted as long as the limit, or an operator confirms it. A jump back is believed,
/// except for the second before it; if it is undone within the limit, that doesn't count as a jump
/// forward. Jumps are logged.
/// Threads: one at a time.
class TimerClock {
 public:
  /// `limit` is the longest jump forward that is believed at once.
  TimerClock(Store& store, std::chrono::milliseconds limit);

  /// Examines the clock and the holds in the database. Call `settle` afterwards.
  void look(database::Connection& connection);
  /// Records the findings of `look`, in a transaction of its own.
  void settle();

  /// The approximate time for timers; unset while they are held. Call `look` shortly before.
  std::optional<Timestamp> now() const;
  /// The same inside a firing transaction, as exact as the database can tell: later statements see
  /// what was committed before that time. Reads others' holds again.
  std::optional<Timestamp> now(database::Connection& connection);

 private:
  struct Sample {
    Timestamp wall = {};
    std::chrono::steady_clock::time_point steady = {};
  };

  Sample sample_at(Timestamp wall) const;
  /// How much further than the steady clock the wall clock has advanced since the last look.
  std::chrono::microseconds drift_until(const Sample& now) const;
  /// The same, without the part that undoes a jump back.
  std::chrono::microseconds jump_until(const Sample& now) const;
  /// Unset while timers are held.
  std::optional<Timestamp> time_at(const Sample& now, const std::vector<Hold>& holds) const;
  void log(std::string_view name, std::string_view message) const;

  Store& store_;
  const std::chrono::microseconds limit_;
  std::optional<Sample> last_;
  /// The last jump that isn't settled yet.
  std::chrono::microseconds jump_{0};
  /// By how much the clock was set back, and when: that much of a jump forward undoes it.
  std::chrono::microseconds put_back_{0};
  std::chrono::steady_clock::time_point put_back_at_ = {};
  std::vector<Hold> holds_;
  /// Time doesn't go back before this, the last time that timers were fired by, unless the clock
  /// has been set back since.
  mutable Timestamp latest_ = Timestamp::min();
};

}  // namespace stela::projections
