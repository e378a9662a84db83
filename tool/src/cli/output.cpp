#include "cli/output.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace stela::tool {
namespace {

constexpr std::size_t buffered = std::size_t{64} * 1024;
constexpr std::size_t most_kept = std::size_t{16} * 1024 * 1024;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  return !is_set("TERM") || std::strcmp(std::getenv("TERM"), "dumb") == 0;
}

/// Returns errno, or 0.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string padded(const std::string& text, std::size_t width, Table::Align align) {
  const std::size_t used = width_of(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Table::Align::right ? blanks + text : text + blanks;
}

}  // namespace

Output::Output(const Options& options)
    : options_{options},
      terminal_{options.kept == nullptr && isatty(STDOUT_FILENO) == 1},
      dumb_{is_dumb()},
      error_terminal_{options.kept == nullptr && isatty(STDERR_FILENO) == 1},
      color_{can_draw() && !options.no_color && !is_set("NO_COLOR")} {}

std::string Output::Kept::list() const {
  std::string lines = out;
  while (lines.ends_with('\n')) lines.pop_back();
  std::replace(lines.begin(), lines.end(), '\n', ',');
  return '[' + lines + ']';
}

Output::~Output() {
  if (options_.kept == nullptr) write_all(STDOUT_FILENO, buffer_);
}

void Output::put(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffered) flush();
}

void Output::flush() {
  const std::string text = std::exchange(buffer_, {});
  if (options_.kept != nullptr) {
    options_.kept->out += text;
    if (options_.kept->out.size() > most_kept)
      throw Exit{failed, "the answer is over 16 MiB: ask for fewer (limit)"};
    return;
  }
  if (const int error = write_all(STDOUT_FILENO, text); error != 0) {
    if (error == EPIPE) throw ReaderGone{};
    throw Exit{failed, "stdout can't be written: " + std::generic_category().message(error)};
  }
}

bool Output::is_reader_gone() noexcept {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

void Output::line(std::string_view text) {
  put(in_lines(text).append("\n"));
}

void Output::heading(std::string_view text) {
  std::string out = color_ ? "\x1b[1m" : "";
  out += in_one_line(text);
  put(out.append(color_ ? "\x1b[0m\n" : "\n"));
}

void Output::clear_screen() {
  if (terminal_) put("\x1b[H\x1b[2J");
}

void Output::json(std::string_view value) {
  put(safe_json(value).append("\n"));
}

bool Output::tell(std::string_view raw) {
  const std::string text = without_passwords(raw);
  if (options_.kept != nullptr) {
    options_.kept->notes.push_back(in_lines(text));
  } else if (options_.log_json) {
    std::string object;
    json::ObjectWriter{object}.add("level", "info").add("message", in_lines(text)).close();
    return write_all(STDERR_FILENO, safe_json(object).append("\n")) == 0;
  } else {
    return write_all(STDERR_FILENO, in_lines(text).append("\n")) == 0;
  }
  return true;
}

void Output::more(More more) {
  if (options_.kept != nullptr) {
    options_.kept->more = std::move(more);
    return;
  }
  const std::string how = "more: " + more.option + " " + in_shell(in_one_line(more.value));
  note(more.found.empty() ? how : more.found + "; " + how + ", or --look-further");
}

void Output::error(std::string_view code, std::string_view text) {
  if (options_.kept != nullptr) {
    options_.kept->error_code = code;
    options_.kept->error = in_lines(without_passwords(text));
    return;
  }
  if (!options_.json && !options_.log_json) return note(text);
  std::string object;
  json::ObjectWriter{object}
      .add("error", code)
      .add("message", in_lines(without_passwords(text)))
      .close();
  write_all(STDERR_FILENO, safe_json(object).append("\n"));
}

void Output::draw(std::string_view raw) {
  write_all(STDERR_FILENO, raw);
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = in_one_line(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    std::size_t width = 0;
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    if (column.most > 0) width = std::min(width, column.most);
    widths.push_back(std::max(width, width_of(column.title)));
  }
  return widths;
}

std::vector<std::string> Table::lines(std::size_t limit) const {
  const std::vector<std::size_t> widths = widths_.empty() ? this->widths() : widths_;
  std::vector<std::string> lines;
  const auto add = [&](const auto& cell_of, bool is_title) {
    std::string text;
    std::vector<std::string> beneath;
    std::size_t end = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text += "  ";
      const Column& column = columns_[i];
      const std::string cell = cell_of(i);
      const bool last = i + 1 == columns_.size() && column.align == Align::left;
      const std::string shown = column.most > 0 ? cut_to(cell, widths[i]) : cell;
      text += last ? shown : padded(shown, widths[i], column.align);
      const std::size_t begin = end + (i > 0 ? 2 : 0);
      end = begin + widths[i];
      const bool fits = width_of(cell) <= widths[i] && begin + width_of(cell) <= limit;
      if (column.most > 0 && !fits && !is_title) beneath.push_back("    " + cell);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    lines.push_back(cut_to(text, limit));
    lines.insert(lines.end(), beneath.begin(), beneath.end());
  };
  if (widths_.empty()) add([&](std::size_t i) { return std::string{columns_[i].title}; }, true);
  for (const auto& row : rows_) add([&](std::size_t i) { return row[i]; }, false);
  return lines;
}

void Table::print(Output& out) {
  const auto all = lines(out.is_terminal() ? terminal_width() : std::string::npos);
  auto line = all.begin();
  if (widths_.empty()) {
    out.heading(*line++);
    widths_ = widths();
  }
  for (; line != all.end(); ++line) out.line(*line);
  rows_.clear();
}

Sheet& Sheet::add(std::string_view name, std::string_view value) {
  lines_.emplace_back(name, in_lines(value));
  return *this;
}

void Sheet::print(Output& out) const {
  std::size_t width = 0;
  for (const auto& [name, value] : lines_) width = std::max(width, width_of(name));
  for (const auto& [name, value] : lines_) {
    std::string text = padded(name, width, Table::Align::left) + "  ";
    // Further lines are aligned with the first.
    for (const char c : value) {
      text += c;
      if (c == '\n') text.append(width + 2, ' ');
    }
    out.line(text);
  }
}

std::string ProgressBar::in_words(std::string_view stage, std::int64_t finished,
                                  std::int64_t total) const {
  const std::chrono::duration<double> spent = Clock::now() - begun_;
  const double rate = static_cast<double>(finished) / std::max(spent.count(), 1e-3);
  std::string text{stage};
  text.append(" ").append(in_digits(finished));
  if (total > 0) text.append(" of ").append(in_digits(total));
  text.append(" ").append(unit_);
  if (total > 0) text += ", " + std::to_string(finished * 100 / total) + " %";
  text += ", " + in_digits(static_cast<std::int64_t>(rate)) + "/s";
  if (total > finished && rate > 0) {
    const double left = static_cast<double>(total - finished) / rate;
    text += ", " +
            tool::in_words(std::chrono::microseconds{static_cast<std::int64_t>(left * 1e6)}) +
            " left";
  }
  return text;
}

void ProgressBar::show(std::string_view stage, std::int64_t finished, std::int64_t total) {
  if (out_.on_progress()) return out_.on_progress()(stage, finished, total);
  if (out_.is_kept()) return;
  const auto now = Clock::now();
  if (stage != stage_) {
    stage_ = stage;
    begun_ = now;
  }
  const bool draws = out_.errors_are_terminal() && !out_.logs_json();
  if (now - begun_ < std::chrono::seconds{1} ||
      now - shown_ < (draws ? std::chrono::milliseconds{200} : std::chrono::milliseconds{5000})) {
    return;
  }
  shown_ = now;
  const std::string text = in_words(stage, finished, total);
  if (!draws) return out_.note(text);
  drawn_ = true;
  constexpr std::int64_t width = 24;
  std::string bar;
  if (total > 0) {
    const auto full = static_cast<std::size_t>(std::min(width, finished * width / total));
    bar.append("[").append(full, '#').append(width - full, '.').append("] ");
  }
  out_.draw("\r\x1b[K" + bar + in_one_line(text));
}

void ProgressBar::clear() {
  if (std::exchange(drawn_, false)) out_.draw("\r\x1b[K");
}

}  // namespace stela::tool
