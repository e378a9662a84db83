#include "timer_clock.hpp"

#include "database/database.hpp"

#include <stela/framework/log.hpp>

#include <algorithm>
#include <string>

namespace stela::projections {
namespace {

using std::chrono::microseconds;

/// A clock that is set back by less stands still until it has caught up.
constexpr microseconds smallest_jump = std::chrono::seconds{1};

std::string in_seconds(microseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

TimerClock::TimerClock(Store& store, std::chrono::milliseconds limit)
    : store_{store}, limit_{limit} {}

TimerClock::Sample TimerClock::sample_at(Timestamp wall) const {
  return {wall, store_.database().clock().steady_now()};
}

microseconds TimerClock::drift_until(const Sample& now) const {
  if (!last_) return microseconds{0};
  const auto passed = std::chrono::duration_cast<microseconds>(now.steady - last_->steady);
  return now.wall - last_->wall - passed;
}

microseconds TimerClock::jump_until(const Sample& now) const {
  const microseconds jump = drift_until(now);
  const bool is_long_ago = now.steady - put_back_at_ > limit_;
  return jump < smallest_jump || is_long_ago ? jump : std::max(jump - put_back_, microseconds{0});
}

void TimerClock::look(database::Connection& connection) {
  const Sample now = sample_at(store_.database().now());
  const microseconds jump = jump_until(now);
  if (jump > limit_ || jump < -smallest_jump) jump_ += jump;
  const microseconds drift = drift_until(now);
  if (drift < -smallest_jump) {
    latest_ = Timestamp::min();
    put_back_ = -drift;
    put_back_at_ = now.steady;
  } else if (drift > smallest_jump) {
    put_back_ = std::max(put_back_ - drift, microseconds{0});
  }
  last_ = now;
  holds_ = read_holds(connection);
}

void TimerClock::settle() {
  const auto clock = std::find_if(holds_.begin(), holds_.end(), [](const Hold& hold) {
    return hold.reason == HoldReason::clock;
  });
  const bool is_held = clock != holds_.end();
  const microseconds jump = std::exchange(jump_, microseconds{0});
  if (jump > limit_) {
    Hold hold{HoldReason::clock, last_->wall, jump,
              "the clock jumped forward by " + in_seconds(jump)};
    if (is_held) hold.ahead += clock->ahead;
    store_.database().write([&](database::Connection& connection) { set_hold(connection, hold); });
    std::erase_if(holds_, [](const Hold& one) { return one.reason == HoldReason::clock; });
    holds_.push_back(hold);
    return log("timer.clock_jumped", hold.detail + "; timers go on by the old time for " +
                                         in_seconds(limit_) +
                                         ", or until `stela timers resume` confirms the new one");
  }
  if (jump < microseconds{0}) {
    log("timer.clock_went_back", "the clock was put back by " + in_seconds(-jump));
  }
  if (!is_held) return;
  const bool has_lasted = last_->wall >= clock->since + limit_;
  const bool went_back = jump < microseconds{0} || last_->wall < clock->since - smallest_jump;
  if (!has_lasted && !went_back) return;
  store_.database().write(
      [&](database::Connection& connection) { drop_hold(connection, HoldReason::clock); });
  std::erase_if(holds_, [](const Hold& one) { return one.reason == HoldReason::clock; });
  if (has_lasted) log("timer.clock_believed", "the clock's jump has lasted; timers follow it");
}

std::optional<Timestamp> TimerClock::time_at(const Sample& now,
                                             const std::vector<Hold>& holds) const {
  if (jump_until(now) > limit_) return std::nullopt;
  Timestamp time = now.wall;
  for (const Hold& hold : holds) {
    if (hold.reason != HoldReason::clock) return std::nullopt;
    time -= hold.ahead;
  }
  const bool was_put_back = drift_until(now) < -smallest_jump || time + smallest_jump < latest_;
  if (was_put_back) latest_ = time;
  return std::max(time, latest_);
}

std::optional<Timestamp> TimerClock::now() const {
  return time_at(sample_at(store_.database().now()), holds_);
}

std::optional<Timestamp> TimerClock::now(database::Connection& connection) {
  const auto time = time_at(sample_at(store_.database().now(connection)), read_holds(connection));
  if (time) latest_ = *time;
  return time;
}

void TimerClock::log(std::string_view name, std::string_view message) const {
  store_.conventions().log->write(
      {.level = LogLevel::warning, .name = name, .message = message, .fields = {}});
}

}  // namespace stela::projections
