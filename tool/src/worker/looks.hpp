// What keys do to the dashboard.
#pragma once

#include "worker/view.hpp"

#include <cstddef>

namespace stela::tool {

inline constexpr int key_escape = 27;
inline constexpr int key_backspace = 127;
/// Behind all characters.
enum Key : int { key_up = 0x110000, key_down, key_page_up, key_page_down, key_home, key_end };

/// Changes what is shown, as the person wants who pressed `key`, in front of so many lines of a
/// page. True if that is to leave.
bool take_key(Looks& looks, int key, std::size_t page);

}  // namespace stela::tool
