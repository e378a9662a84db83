#include "worker/screen.hpp"

#include "cli/exit.hpp"
#include "worker/looks.hpp"

#include <unistd.h>

#include <array>

// Included last, because its macros have many short names.
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <termios.h>

namespace stela::tool {
namespace {

termios terminal_before;
bool is_taken = false;

constexpr std::array<short, 6> pair_colors{-1, -1, -1, COLOR_GREEN, COLOR_YELLOW, COLOR_RED};
/// Of 256 colours: legible on white and black, which yellow isn't.
constexpr std::array<short, 6> dark_colors{-1, -1, -1, 28, 130, 160};

attr_t attributes_of(Style style, bool color) {
  attr_t attributes = A_NORMAL;
  if (style == Style::bold || style == Style::bad) attributes |= A_BOLD;
  if (style == Style::dim) attributes |= A_DIM;
  const auto index = static_cast<std::size_t>(style);
  if (color && pair_colors[index] >= 0)
    attributes |= static_cast<attr_t>(COLOR_PAIR(static_cast<int>(index)));
  return attributes;
}

/// Translates a curses key. 0 if it has no meaning here.
int key_of(int key) {
  switch (key) {
    case KEY_BACKSPACE:
    case '\b':
      return key_backspace;
    case KEY_UP:
      return key_up;
    case KEY_DOWN:
      return key_down;
    case KEY_PPAGE:
      return key_page_up;
    case KEY_NPAGE:
      return key_page_down;
    case KEY_HOME:
      return key_home;
    case KEY_END:
      return key_end;
    default:
      return key >= 0 && key <= 0xff ? key : 0;
  }
}

}  // namespace

Screen::Screen(bool color) {
  tcgetattr(STDIN_FILENO, &terminal_before);
  // Unlike newterm, initscr would end the process if the terminal is unknown.
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    throw Exit{failed, "this terminal can't show the dashboard; set TERM, or say --json"};
  }
  is_taken = true;
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, TRUE);
  set_escdelay(25);
  if (!color || start_color() == ERR || use_default_colors() == ERR) return;
  const auto& colors = COLORS >= 256 ? dark_colors : pair_colors;
  for (std::size_t i = 0; i < colors.size(); ++i) {
    if (colors[i] >= 0) init_pair(static_cast<short>(i), colors[i], -1);
  }
}

Screen::~Screen() {
  endwin();
  is_taken = false;
}

Size Screen::size() const {
  return {getmaxx(stdscr), getmaxy(stdscr)};
}

void Screen::draw(const std::vector<Line>& lines) {
  const bool color = has_colors();
  werase(stdscr);
  const int height = getmaxy(stdscr);
  for (int row = 0; row < height && row < static_cast<int>(lines.size()); ++row) {
    wmove(stdscr, row, 0);
    for (const Span& span : lines[static_cast<std::size_t>(row)]) {
      wattrset(stdscr, static_cast<int>(attributes_of(span.style, color)));
      waddnstr(stdscr, span.text.c_str(), -1);
    }
  }
  wrefresh(stdscr);
}

int Screen::wait_for_key(std::chrono::milliseconds limit) {
  wtimeout(stdscr, static_cast<int>(limit.count()));
  return key_of(wgetch(stdscr));
}

void Screen::restore() noexcept {
  if (!is_taken) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  constexpr char back[] = "\x1b[0m\x1b[?25h\x1b[?1049l\r\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, back, sizeof back - 1);
}

}  // namespace stela::tool
