// How long a follower waits after consecutive failures.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/detail/backoff.hpp>
#include <stela/framework/uuid.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace stela::follow {

/// The first wait is `first`; each further one is twice as long, up to `most`.
struct Backoff {
  std::chrono::microseconds first;
  std::chrono::microseconds most;
  /// The share of a wait that is random, so that simultaneous failures aren't retried together.
  double jitter = 0;

  /// The wait after this many consecutive failures, from 1; without jitter.
  std::chrono::microseconds after(int failures) const { return doubled(first, most, failures); }

  std::chrono::microseconds after(int failures, Random& random) const {
    return scaled(after(failures), 1.0 + jitter * (2.0 * draw_unit(random) - 1.0));
  }

  /// The longest wait, with jitter.
  std::chrono::microseconds longest() const { return scaled(most, 1.0 + jitter); }

  /// The remaining wait until `next`, the stored time of an attempt. Zero if that is further away
  /// than any wait: the clock was set back.
  std::chrono::microseconds left(Timestamp next, Timestamp now) const {
    const std::chrono::microseconds left = next - now;
    return left.count() > 0 && left / 2 <= longest() ? left : std::chrono::microseconds{0};
  }

 private:
  /// A number from 0 up to, but not including, 1.
  static double draw_unit(Random& random) {
    std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
    random.fill(bytes);
    return static_cast<double>(std::bit_cast<std::uint64_t>(bytes) >> 11) * 0x1.0p-53;
  }
  static std::chrono::microseconds scaled(std::chrono::microseconds wait, double factor) {
    return std::chrono::microseconds{
        static_cast<std::int64_t>(static_cast<double>(wait.count()) * factor)};
  }
};

}  // namespace stela::follow
