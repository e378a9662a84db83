// A page of a list: at which end it begins, how much it shows and looks at, how to get the next
// one.
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

/// So many rows are looked at for a filter that no index serves.
inline constexpr std::int64_t most_looked = 20'000;

inline constexpr Option limit_option{"--limit", "N", "at most this many (default 100)"};
inline constexpr Option newest_first_option{"--newest-first", "", "newest first"};
inline constexpr Option look_further_option{
    "--look-further", "", "look at more than 20,000 rows where no index serves the selection"};

/// So many rows are in memory at once.
inline constexpr std::int64_t rows_at_once = 1000;

/// What --since and --until select.
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
  /// What --limit, --newest-first, --look-further and --after say.
  explicit Page(const Arguments& arguments, std::int64_t default_limit = 100);
  /// The same, in a direction that isn't theirs to say.
  Page(const Arguments& arguments, Direction direction);

  bool is_backward() const noexcept { return direction_ == Direction::backward; }
  Direction direction() const noexcept { return direction_; }
  /// It may look at so many rows only, as it shows so many only.
  bool is_bounded() const noexcept { return !looks_further_ && limit_ != no_limit; }
  std::int64_t shown() const noexcept { return shown_; }
  /// So many rows are left to be read: one more than it shows, to know whether there are more.
  std::int64_t rows_read() const noexcept {
    return limit_ == no_limit ? no_limit : limit_ - shown_ + 1;
  }

  /// Counts a row that is shown, at this place: what --after takes. False if there is no room for
  /// it.
  bool take(std::string place);
  bool take(std::int64_t place) { return take(std::to_string(place)); }
  /// Counts a row that is looked at. False if it may look at no more: then `take` isn't called.
  bool look(std::string place);
  bool look(std::int64_t place) { return look(std::to_string(place)); }
  /// Nothing between here and the end was looked at, but so many rows before it.
  void stop(std::string place, std::int64_t looked);
  void stop(std::int64_t place, std::int64_t looked) { stop(std::to_string(place), looked); }
  /// It has all that there is.
  bool is_complete() const noexcept { return end_ == End::of_all; }

  /// On stderr, unless it is complete. `total`: how many rows there are, 0 if that isn't known.
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
  /// The last row that was shown or looked at.
  std::string last_ = {};
};

}  // namespace stela::tool
