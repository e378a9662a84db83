// How many bytes may be in flight on a line of unknown speed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stela {

/// Grows while answers take a small part of their time limit, and shrinks before they take all of
/// it. So a slow line holds little at a time, which is all that a stop or a renewal waits for.
/// Threads: one at a time.
class ByteWindow {
 public:
  struct Sizes {
    std::int64_t first = std::int64_t{1024} * 1024;
    std::int64_t least = small;
  };

  ByteWindow() noexcept : ByteWindow{Sizes{}} {}
  explicit ByteWindow(Sizes sizes) noexcept : least_{sizes.least}, size_{sizes.first} {}

  std::int64_t size() const noexcept { return size_; }

  /// A message of this size was stored, and its answer took this long of `limit`.
  void on_stored(std::int64_t bytes, std::chrono::nanoseconds took,
                 std::chrono::nanoseconds limit) noexcept {
    answered_ += bytes;
    // Messages sent under the previous size say nothing about this one.
    if (answered_ < size_) return;
    answered_ = 0;
    if (took > limit / 4) {
      size_ = std::max(size_ / 2, least_);
    } else if (took < limit / 8) {
      // Leave room for two messages, even of one that exceeded the window alone.
      size_ = std::min(std::max(size_, bytes) * 2, most);
    }
  }
  /// Answers are missing.
  void on_missed() noexcept {
    size_ = std::max(std::min(size_ / 2, small), least_);
    answered_ = 0;
  }

 private:
  static constexpr std::int64_t small = 64 * 1024;
  static constexpr std::int64_t most = std::int64_t{1} << 40;

  std::int64_t least_;
  std::int64_t size_;
  /// Since the size last changed, or could have.
  std::int64_t answered_ = 0;
};

}  // namespace stela
