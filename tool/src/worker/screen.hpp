// The terminal that the dashboard is drawn on.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <chrono>

namespace stela::tool {

/// Takes the terminal over, and gives it back as it was when it goes.
/// Threads: one at a time.
class Screen {
 public:
  /// Exit if the terminal can't show it.
  explicit Screen(bool color);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Size size() const;
  void draw(const std::vector<Line>& lines);
  /// The next character or Key, or 0 if none came in time; also 0 when the size has changed.
  int wait_for_key(std::chrono::milliseconds limit);

  /// For the way out of the process: puts the terminal back without asking anybody.
  static void restore() noexcept;
};

}  // namespace stela::tool
