// A page of a list: its direction, its limits of shown and examined rows, and how to get the next
// page.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"

#include <stela/framework/clock.hpp>
#include <stela/framework/query.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// The limit of examined rows for a filter without an index.
inline constexpr std::int64_t most_looked = 20'000;

inline constexpr Option limit_option{"--limit", "N", "at most this many (default 100)"};
inline constexpr Option newest_first_option{"--newest-first", "", "newest first"};
inline constexpr Option look_further_option{
    "--look-further", "", "look at more than 20,000 rows where no index serves the selection"};

/// The limit of rows in memory at once.
inline constexpr std::int64_t rows_at_once = 1000;

/// The range of --since and --until.
struct TimeRange {
  explicit TimeRange(const Arguments& arguments);

  bool has(const std::optional<Timestamp>& time) const noexcept {
    return (!since || (time && *time >= *since)) && (!until || (time && *time <= *until));
  }

  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};
};

/// Threads: one at a time.
class Page {
 public:
  Page(std::int64_t limit, Direction direction, bool looks_further = false)
      : limit_{limit}, direction_{direction}, looks_further_{looks_further} {}
  /// From --limit, --newest-first, --look-further and --after.
  explicit Page(const Arguments& arguments, std::int64_t default_limit = 100);
  /// As above, but with a fixed direction.
  Page(const Arguments& arguments, Direction direction);

  bool is_backward() const noexcept { return direction_ == Direction::backward; }
  Direction direction() const noexcept { return direction_; }
  /// True if the number of examined rows is limited, as the number of shown rows is.
  bool is_bounded() const noexcept { return !looks_further_ && limit_ != no_limit; }
  std::int64_t shown() const noexcept { return shown_; }
  /// The number of rows left to read: one more than it shows, to know whether there are more.
  std::int64_t rows_read() const noexcept {
    return limit_ == no_limit ? no_limit : limit_ - shown_ + 1;
  }

  /// Counts a row to show, at this place, which --after takes. False if the page is full.
  bool take(std::string place);
  bool take(std::int64_t place) { return take(std::to_string(place)); }
  /// Counts an examined row. False at the limit: then don't call `take`.
  bool look(std::string place);
  bool look(std::int64_t place) { return look(std::to_string(place)); }
  /// Ends the page at the place: `looked` rows were examined before it, and none after it.
  void stop(std::string place, std::int64_t looked);
  void stop(std::int64_t place, std::int64_t looked) { stop(std::to_string(place), looked); }
  /// True if the list has no more rows.
  bool is_complete() const noexcept { return end_ == End::of_all; }

  /// Tells on stderr what is missing, unless it is complete. `total` is the number of rows, or 0 if
  /// it is unknown.
  void tell(Output& out, std::string_view noun, std::int64_t total) const;

 private:
  enum class End : std::uint8_t { of_all, of_page, of_work };

  const std::int64_t limit_;
  const Direction direction_;
  const bool looks_further_;
  bool is_continued_ = false;
  End end_ = End::of_all;
  std::int64_t shown_ = 0;
  std::int64_t looked_ = 0;
  /// The last row that was shown or examined.
  std::string last_ = {};
};

}  // namespace stela::tool
