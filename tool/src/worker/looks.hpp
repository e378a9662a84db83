// The dashboard's reaction to keys.
#pragma once

#include "worker/view.hpp"

#include <cstddef>

namespace stela::tool {

inline constexpr int key_escape = 27;
inline constexpr int key_backspace = 127;
/// Above all character codes.
enum Key : int { key_up = 0x110000, key_down, key_page_up, key_page_down, key_home, key_end };

/// Changes what is shown according to `key`. `page` is the number of lines per page. True if the
/// key means to leave.
bool take_key(Looks& looks, int key, std::size_t page);

}  // namespace stela::tool
