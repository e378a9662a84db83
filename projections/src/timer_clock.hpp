// The store's time, as timers see it: it doesn't jump.
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
/// but for the last second before it; if it is undone within the limit, that is no jump forward.
/// Jumps are logged.
/// Threads: one at a time.
class TimerClock {
 public:
  /// `limit` is the longest jump forward that is believed at once.
  TimerClock(Store& store, std::chrono::milliseconds limit);

  /// Looks at the clock and at the holds, as `connection` has them. Follow it by `settle`.
  void look(database::Connection& connection);
  /// Notes what `look` found out, in a transaction of its own.
  void settle();

  /// About what time it is for timers; nothing while they are held. `look` at most a moment ago.
  std::optional<Timestamp> now() const;
  /// The same in a transaction that fires, as exact as the database can say it: statements after
  /// this one see what was committed before that time. What others hold is read again.
  std::optional<Timestamp> now(database::Connection& connection);

 private:
  struct Sample {
    Timestamp wall = {};
    std::chrono::steady_clock::time_point steady = {};
  };

  Sample sample_at(Timestamp wall) const;
  /// By how much more than the steady clock the wall clock went on since the last look.
  std::chrono::microseconds drift_until(const Sample& now) const;
  /// The same, without what undoes a jump back.
  std::chrono::microseconds jump_until(const Sample& now) const;
  /// Nothing while they are held.
  std::optional<Timestamp> time_at(const Sample& now, const std::vector<Hold>& holds) const;
  void log(std::string_view name, std::string_view message) const;

  Store& store_;
  const std::chrono::microseconds limit_;
  std::optional<Sample> last_;
  /// The last jump, until it is settled.
  std::chrono::microseconds jump_{0};
  /// By how much the clock was put back, and when: so much of a jump forward undoes that.
  std::chrono::microseconds put_back_{0};
  std::chrono::steady_clock::time_point put_back_at_ = {};
  std::vector<Hold> holds_;
  /// Time doesn't go back before this: the last one that timers were fired by, unless the clock was
  /// put back since.
  mutable Timestamp latest_ = Timestamp::min();
};

}  // namespace stela::projections
