// What a command prints: data on stdout, everything else on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// Nothing that it writes can be obeyed by a terminal, whatever the data is.
/// Threads: one at a time.
class Output {
 public:
  /// How a list that ended before its end goes on.
  struct More {
    /// "--after", and its value.
    std::string option = {};
    std::string value = {};
    /// What was found until then; empty: as many as were asked for.
    std::string found = {};
  };
  /// What a command printed for a program that runs it.
  struct Kept {
    std::string out = {};
    std::vector<std::string> notes = {};
    std::optional<More> more = {};
    std::string error_code = {};
    std::string error = {};

    /// What was printed, an object a line, as a JSON list.
    std::string list() const;
  };
  struct Options {
    bool json = false;
    bool no_color = false;
    bool log_json = false;
    /// Takes everything in place of stdout and stderr; Exit if it is more than 16 MiB.
    Kept* kept = nullptr;
    /// Hears how far a long piece of work has come; the total is 0 if nobody knows it.
    std::function<void(std::string_view stage, std::int64_t finished, std::int64_t total)>
        on_progress = {};
  };
  explicit Output(const Options& options);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_json() const noexcept { return options_.json; }
  /// For a program that runs the command: nobody has typed its name.
  bool is_kept() const noexcept { return options_.kept != nullptr; }
  const auto& on_progress() const noexcept { return options_.on_progress; }
  bool has_color() const noexcept { return color_; }
  bool is_terminal() const noexcept { return terminal_; }
  /// stdout is a terminal that can be drawn on: one that calls itself dumb gets lines.
  bool can_draw() const noexcept { return terminal_ && !options_.json && !dumb_; }
  bool errors_are_terminal() const noexcept { return error_terminal_; }

  /// A line on stdout; line breaks in it stay.
  void line(std::string_view text = {});
  /// A line on stdout in bold, where there is colour.
  void heading(std::string_view text);
  /// What follows begins at the top of an empty screen.
  void clear_screen();
  /// A JSON value on a line of stdout.
  void json(std::string_view value);
  /// A message on stderr.
  void note(std::string_view text);
  /// Says it on stderr.
  void more(More more);
  /// A message on stderr, as an object with --json.
  void error(std::string_view code, std::string_view text);
  /// Hands everything over. Exit if stdout can't be written, ReaderGone if nobody reads it.
  void flush();
  /// Whether stdout is a pipe that nobody reads any more.
  static bool is_reader_gone() noexcept;
  /// Not by way of the buffer: for drawing on stderr.
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

/// Rows under aligned titles; what doesn't fit the terminal is cut off on the right. Columns are as
/// wide as what is printed first needs; a longer cell that is printed later pushes on what follows
/// it.
/// Threads: one at a time.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    /// A cell that is wider, or doesn't fit the terminal, stands whole on a line of its own beneath
    /// its row. 0: as wide as it is, and cut off.
    std::size_t most = 0;
  };
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}

  void add(std::vector<std::string> cells);
  /// It has as many rows as should be in memory at once: print it.
  bool is_full() const noexcept { return rows_.size() >= 200; }
  /// Prints the titles once, and the rows that were added since.
  void print(Output& out);
  /// The same for so many columns, without printing it.
  std::vector<std::string> lines(std::size_t limit) const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  /// Once the titles are printed.
  std::vector<std::size_t> widths_;
};

/// Names and values under each other.
/// Threads: one at a time.
class Sheet {
 public:
  Sheet& add(std::string_view name, std::string_view value);
  void print(Output& out) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

/// Shows how far a long piece of work has come: a bar with rate and time left on a terminal, a line
/// now and then elsewhere; nothing of what takes less than a second.
/// Threads: one at a time.
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
