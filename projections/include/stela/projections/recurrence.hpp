// Recurring timers, and when they are due.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/projections/export.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

namespace stela {

/// At `first`, and then in steps of `interval`, which is at least a second.
struct Every {
  std::chrono::microseconds interval{0};
  Timestamp first = {};
};

/// Every day at a local time of day in a time zone: `DailyAt{9h + 30min, "Europe/Berlin"}`. A time
/// that is skipped when the clocks change becomes the first valid time after it. A time that occurs
/// twice means the first.
struct DailyAt {
  /// Local time since midnight; less than a day.
  std::chrono::microseconds time{0};
  /// A name of the IANA time zone database.
  std::string zone = {};
};

using Recurrence = std::variant<Every, DailyAt>;

namespace detail {

/// A timer that is set to an earlier time is due at this one.
inline constexpr Timestamp first_time = {};
/// The first time that can no longer be written as text. Timers are due before it.
inline constexpr Timestamp end_of_time =
    std::chrono::sys_days{std::chrono::year{10000} / std::chrono::January / 1};

/// UsageError if an interval is shorter than a second or longer than a century, a time of day isn't
/// within a day, or the host doesn't know the time zone.
STELA_PROJECTIONS_EXPORT void check_recurrence(const Recurrence& recurrence);
/// The first due time of a timer that is set at `now`.
STELA_PROJECTIONS_EXPORT Timestamp first_due(const Recurrence& recurrence, Timestamp now);

/// The stored form: "every 86400000000", in microseconds, or "daily 34200000000 Europe/Berlin".
STELA_PROJECTIONS_EXPORT std::string to_text(const Recurrence& recurrence);
/// For people: "every 01:00:00", "daily at 09:30 in Europe/Berlin"; empty if `text` is empty.
STELA_PROJECTIONS_EXPORT std::string in_words(std::string_view text);
/// The next time after `due` that is also after `now`: missed times coalesce into the one that
/// fires now. CorruptEvent if `text` isn't a recurrence.
STELA_PROJECTIONS_EXPORT Timestamp next_due(std::string_view text, Timestamp due, Timestamp now);

}  // namespace detail
}  // namespace stela
