// A page of a list: at which end it begins, how much it shows and looks at, how to get the next
// one.
#pragma once

#include "cli/arguments.hpp"
#include "description/description.hpp"

#include <stela/framework/query.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

/// So many rows are looked at for a filter that no index serves.
inline constexpr std::int64_t most_looked = 20'000;

inline constexpr Option limit_option{"--limit", "N", "at most this many (default 100)"};
inline constexpr Option newest_first_option{"--newest-first", "", "newest first"};
inline constexpr Option look_further_option{
    "--look-further", "", "look at more than 20,000 rows where no index serves the selection"};

/// How to get the next page of a list: text that continues the command.
void tell_next(Output& out, std::string_view after);

/// So many rows are in memory at once.
inline constexpr std::int64_t rows_at_once = 1000;

/// Prints what `read` finds, a page after the other: it is given the last row before it, or null,
/// and how many rows to read. `place` is what --after takes to continue after a row.
template <class T, class Read, class PlaceOf>
void print_pages(Output& out, const Description<T>& description, std::int64_t limit, Read read,
                 PlaceOf place) {
  Listing<T> listing{out, description};
  std::optional<T> last;
  bool has_more = true;
  while (has_more && limit > 0) {
    const std::int64_t most = std::min(limit, rows_at_once);
    std::vector<T> rows = read(last ? &*last : nullptr, most + 1);
    has_more = static_cast<std::int64_t>(rows.size()) > most;
    if (has_more) rows.pop_back();
    limit -= static_cast<std::int64_t>(rows.size());
    for (const T& row : rows) listing.add(row);
    if (!rows.empty()) last.emplace(std::move(rows.back()));
  }
  listing.print();
  if (has_more && last) tell_next(out, place(*last));
}

/// Threads: one at a time.
class Page {
 public:
  struct Options {
    std::int64_t limit = 100;
    Direction direction = Direction::forward;
    bool looks_further = false;
  };
  explicit Page(const Options& options) : options_{options} {}
  /// What --limit, --newest-first, --look-further and --after say.
  explicit Page(const Arguments& arguments, std::int64_t default_limit = 100);

  bool is_backward() const noexcept { return options_.direction == Direction::backward; }
  Direction direction() const noexcept { return options_.direction; }
  /// It may look at so many rows only, as it shows so many only.
  bool is_bounded() const noexcept { return !options_.looks_further && options_.limit != no_limit; }
  std::int64_t shown() const noexcept { return shown_; }
  std::int64_t room() const noexcept { return options_.limit - shown_; }
  /// So many rows are read: one more than it shows, to know whether there are more.
  std::int64_t rows_read() const noexcept;

  /// Counts a row that is shown, at this place: what --after takes. False if there is no room for
  /// it.
  bool take(std::string place);
  bool take(std::int64_t place) { return take(std::to_string(place)); }
  /// Counts a row that is looked at. False if it may look at no more: then `take` isn't called.
  bool look(std::string place);
  bool look(std::int64_t place) { return look(std::to_string(place)); }
  /// It is full, and there are more rows.
  void end() noexcept { end_ = End::of_page; }
  /// Nothing between here and the end was looked at, but so many rows before it.
  void stop(std::int64_t place, std::int64_t looked);
  /// It has all that there is.
  bool is_complete() const noexcept { return end_ == End::of_all; }

  /// On stderr, unless it is complete. `total`: how many rows there are, 0 if that isn't known.
  void tell(Output& out, std::string_view noun, std::int64_t total) const;

 private:
  enum class End : std::uint8_t { of_all, of_page, of_work };

  Options options_;
  bool is_continued_ = false;
  End end_ = End::of_all;
  std::int64_t shown_ = 0;
  std::int64_t looked_ = 0;
  /// The last row that was shown or looked at.
  std::string last_ = {};
};

}  // namespace stela::tool
