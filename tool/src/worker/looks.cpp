#include "worker/looks.hpp"

#include <algorithm>
#include <limits>

namespace stela::tool {
namespace {

constexpr std::size_t longest_filter = 64;

void type(Looks& looks, int key) {
  if (key == key_escape) looks.filter.clear();
  if (key == key_escape || key == '\n' || key == '\r') {
    looks.typing = false;
  } else if (key == key_backspace) {
    if (!looks.filter.empty()) looks.filter.pop_back();
  } else if (key >= ' ' && key < key_backspace && looks.filter.size() < longest_filter) {
    looks.filter += static_cast<char>(key);
  }
  looks.scroll = 0;
}

/// Changes the scroll position. Drawing limits it to the end.
void scroll(Looks& looks, int key, std::size_t page) {
  const std::size_t step = std::max<std::size_t>(page, 2) - 1;
  const auto back = [&](std::size_t lines) { looks.scroll -= std::min(lines, looks.scroll); };
  switch (key) {
    case key_up:
    case 'k':
      return back(1);
    case key_page_up:
      return back(step);
    case key_down:
    case 'j':
      looks.scroll += 1;
      return;
    case key_page_down:
    case ' ':
      looks.scroll += step;
      return;
    case key_home:
    case 'g':
      looks.scroll = 0;
      return;
    case key_end:
    case 'G':
      looks.scroll = std::numeric_limits<std::size_t>::max() / 2;
      return;
    default:
      return;
  }
}

}  // namespace

bool take_key(Looks& looks, int key, std::size_t page) {
  if (looks.typing) {
    type(looks, key);
    return false;
  }
  switch (key) {
    case 'q':
      looks.paused = false;
      return true;
    case 'p':
      looks.paused = !looks.paused;
      break;
    case 'a':
      looks.shows_all = !looks.shows_all;
      looks.scroll = 0;
      break;
    case 's':
      looks.sort = looks.sort == SortKey::label
                       ? SortKey::pending
                       : static_cast<SortKey>(static_cast<int>(looks.sort) + 1);
      break;
    case '?':
      looks.help = !looks.help;
      looks.scroll = 0;
      break;
    case '/':
      looks.typing = true;
      looks.filter.clear();
      break;
    case key_escape:
      looks.help = false;
      looks.filter.clear();
      break;
    default:
      scroll(looks, key, page);
  }
  return false;
}

}  // namespace stela::tool
