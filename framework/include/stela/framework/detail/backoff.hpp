// Waits that grow.
#pragma once

#include <algorithm>

namespace stela {

/// The wait after so many failures in a row, from 1: `base`, doubled each time, at most `most`.
template <class Duration>
constexpr Duration doubled(Duration base, Duration most, int failures) {
  Duration wait = std::min(base, most);
  if (wait.count() <= 0) return Duration{0};
  for (int i = 1; i < failures && wait < most; ++i) wait = wait > most / 2 ? most : wait * 2;
  return wait;
}

}  // namespace stela
