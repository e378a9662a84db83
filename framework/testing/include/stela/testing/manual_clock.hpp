// A clock that only a test moves.
#pragma once

#include <stela/framework/clock.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stela::testing {

/// Begins at 2026-01-01T00:00:00Z. Wall and steady time advance together. Only wall time can jump.
/// Threads: any number at once.
class ManualClock final : public Clock {
 public:
  Timestamp now() const override {
    return start + std::chrono::microseconds{wall_.load(std::memory_order_relaxed)};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point{
        std::chrono::microseconds{steady_.load(std::memory_order_relaxed)}};
  }

  void advance(std::chrono::microseconds by) noexcept {
    wall_.fetch_add(by.count(), std::memory_order_relaxed);
    steady_.fetch_add(by.count(), std::memory_order_relaxed);
  }
  /// Sets wall time only, as an administrator or a time server would.
  void jump_to(Timestamp time) noexcept {
    wall_.store((time - start).count(), std::memory_order_relaxed);
  }

  static constexpr Timestamp start =
      std::chrono::sys_days{std::chrono::year{2026} / std::chrono::January / 1};

 private:
  std::atomic<std::int64_t> wall_{0};
  std::atomic<std::int64_t> steady_{0};
};

}  // namespace stela::testing
