// A command's output: data on stdout, everything else on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// Prints nothing that a terminal would obey, whatever the data is. Threads: one at a time.
class Output {
 public:
  /// How to continue a list that was cut short.
  struct More {
    /// "--after", and its value.
    std::string option = {};
    std::string value = {};
    /// The items found so far. Empty: as many as were asked for.
    std::string found = {};
  };
  /// The output of a command, kept for the program that runs it.
  struct Kept {
    std::string out = {};
    std::vector<std::string> notes = {};
    std::optional<More> more = {};
    std::string error_code = {};
    std::string error = {};

    /// The printed objects, one per line, as a JSON list.
    std::string list() const;
  };
  struct Options {
    bool json = false;
    bool no_color = false;
    bool log_json = false;
    /// Receives all output instead of stdout and stderr. Exit above 16 MiB.
    Kept* kept = nullptr;
    /// Called with the progress of a long operation. The total is 0 if it is unknown.
    std::function<void(std::string_view stage, std::int64_t finished, std::int64_t total)>
        on_progress = {};
  };
  explicit Output(const Options& options);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_json() const noexcept { return options_.json; }
  /// True if a program runs the command, so no command line was typed.
  bool is_kept() const noexcept { return options_.kept != nullptr; }
  const auto& on_progress() const noexcept { return options_.on_progress; }
  bool has_color() const noexcept { return color_; }
  bool is_terminal() const noexcept { return terminal_; }
  /// True if stdout is a terminal that can be drawn on. A "dumb" terminal gets lines.
  bool can_draw() const noexcept { return terminal_ && !options_.json && !dumb_; }
  bool errors_are_terminal() const noexcept { return error_terminal_; }

  /// Prints a line on stdout and keeps its line breaks.
  void line(std::string_view text = {});
  /// Prints a line on stdout, in bold if there is colour.
  void heading(std::string_view text);
  /// Clears the screen, and continues at its top.
  void clear_screen();
  /// Prints a JSON value on a line of stdout.
  void json(std::string_view value);
  /// Prints a message on stderr.
  void note(std::string_view text) { static_cast<void>(tell(text)); }
  /// The same. False if it can't be written.
  bool tell(std::string_view text);
  /// Prints on stderr how to get more.
  void more(More more);
  /// Prints a message on stderr, as an object with --json.
  void error(std::string_view code, std::string_view text);
  /// Flushes all output. Exit if stdout can't be written, ReaderGone if nobody reads it.
  void flush();
  /// True if stdout is a pipe without a reader.
  static bool is_reader_gone() noexcept;
  /// Draws on stderr, bypassing the buffer.
  void draw(std::string_view raw);
  void log_as_json(bool yes) noexcept { options_.log_json = yes; }
  bool logs_json() const noexcept { return options_.log_json; }

 private:
  void put(std::string_view text);

  Options options_;
  bool terminal_;
  bool dumb_;
  bool error_terminal_;
  bool color_;
  std::string buffer_;
};

/// Rows under aligned titles. Text that doesn't fit the terminal is cut off on the right. The first
/// printed rows set the widths; a longer cell printed later pushes the rest of its row to the
/// right. Threads: one at a time.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    /// A cell that is wider, or doesn't fit the terminal, gets a line of its own beneath its row.
    /// 0: no limit; the cell is cut off.
    std::size_t most = 0;
  };
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}

  void add(std::vector<std::string> cells);
  /// True if it has as many rows as should be in memory at once: print it then.
  bool is_full() const noexcept { return rows_.size() >= 200; }
  /// Prints the titles once, and the rows added since the last call.
  void print(Output& out);
  /// The lines that `print` would print on so many columns.
  std::vector<std::string> lines(std::size_t limit) const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  /// Set once the titles are printed.
  std::vector<std::size_t> widths_;
};

/// Names and values below each other. Threads: one at a time.
class Sheet {
 public:
  Sheet& add(std::string_view name, std::string_view value);
  void print(Output& out) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

/// Shows the progress of a long operation: on a terminal a bar with rate and remaining time,
/// elsewhere a line now and then. Prints nothing in the first second. Threads: one at a time.
class ProgressBar {
 public:
  ProgressBar(Output& out, std::string unit) : out_{out}, unit_{std::move(unit)} {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::string_view stage, std::int64_t finished, std::int64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string in_words(std::string_view stage, std::int64_t finished, std::int64_t total) const;

  Output& out_;
  std::string unit_;
  std::string stage_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point shown_ = begun_;
  bool drawn_ = false;
};

}  // namespace stela::tool
