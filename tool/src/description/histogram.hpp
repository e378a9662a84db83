// A histogram of durations.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stela::tool {

/// Threads: one at a time.
class Histogram {
 public:
  /// Upper bounds in seconds. One more bucket follows the last.
  static constexpr std::array bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                     0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                     1.0,    2.5,     5.0,    10.0,  30.0,   60.0};

  void add(std::chrono::microseconds duration) noexcept {
    add_seconds(static_cast<double>(duration.count()) / 1e6);
  }
  void add_seconds(double seconds) noexcept {
    seconds = std::max(0.0, seconds);
    const auto at = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
    ++counts_[static_cast<std::size_t>(at)];
    ++count_;
    sum_ += seconds;
  }

  std::int64_t count() const noexcept { return count_; }
  double sum() const noexcept { return sum_; }
  /// The number of values up to the bound with this index.
  std::int64_t up_to(std::size_t bound) const noexcept {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i <= bound; ++i) sum += counts_[i];
    return sum;
  }

 private:
  std::array<std::int64_t, bounds.size() + 1> counts_{};
  std::int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace stela::tool
