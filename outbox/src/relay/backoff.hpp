// Waits that grow.
#pragma once

#include <stela/framework/backoff.hpp>
#include <stela/framework/uuid.hpp>
#include <stela/outbox/relay_options.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace stela::relay {

/// A number from 0 up to 1.
inline double draw_unit(Random& random) {
  std::array<std::uint8_t, 8> bytes{};
  random.fill(bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

/// The wait after the `attempt`-th failure in a row, from 1: base × 2^(attempt-1), at most `most`,
/// give or take the share `jitter`.
inline std::chrono::microseconds backoff(std::chrono::microseconds base,
                                         std::chrono::microseconds most, int attempt, double jitter,
                                         Random& random) {
  const auto wait = static_cast<double>(doubled(base, most, attempt).count());
  const double factor = 1.0 + jitter * (2.0 * draw_unit(random) - 1.0);
  return std::chrono::microseconds{static_cast<std::int64_t>(wait * factor)};
}

inline std::chrono::microseconds backoff(const RelayOptions& options, int attempt, Random& random) {
  return backoff(options.retry_backoff, options.retry_backoff_max, attempt, options.retry_jitter,
                 random);
}

/// The longest wait that `backoff` gives.
inline std::chrono::microseconds longest_backoff(const RelayOptions& options) {
  return std::chrono::microseconds{static_cast<std::int64_t>(
      static_cast<double>(std::chrono::microseconds{options.retry_backoff_max}.count()) *
      (1.0 + options.retry_jitter))};
}

}  // namespace stela::relay
