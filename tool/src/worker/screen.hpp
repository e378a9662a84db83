// The terminal that the dashboard is drawn on.
#pragma once

#include "worker/line.hpp"
#include "worker/view.hpp"

#include <chrono>

namespace stela::tool {

/// Takes over the terminal, and restores it at the end. Threads: one at a time.
class Screen {
 public:
  /// Exit if the terminal can't show it.
  explicit Screen(bool color);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Size size() const;
  void draw(const std::vector<Line>& lines);
  /// The next character or Key. 0 on a timeout or a change of size.
  int wait_for_key(std::chrono::milliseconds limit);

  /// For the end of the process: restores the terminal without an object.
  static void restore() noexcept;
};

}  // namespace stela::tool
