// A wall clock that another process sets.
#pragma once

#include <stela/framework/clock.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace stela::chaos {

/// The host's clocks, with a wall clock so far ahead as a file says, at any time. Steady time is
/// true: it doesn't jump on real hosts either.
/// Threads: any; and any number of processes on one file.
class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(const std::string& file);
  ~JumpingClock() override;
  JumpingClock(const JumpingClock&) = delete;
  JumpingClock& operator=(const JumpingClock&) = delete;

  /// Behind, if it is negative.
  void set_ahead(std::chrono::microseconds by);

  Timestamp now() const override;
  std::chrono::steady_clock::time_point steady_now() const override {
    return system_clock().steady_now();
  }

 private:
  std::int64_t* ahead_us_;
};

}  // namespace stela::chaos
