// Points in time as text: RFC 3339 in UTC, with the resolution of the type.
#pragma once

#include <stela/framework/export.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>

namespace stela::codec {

/// A time since 1970, split so that neither part overflows.
struct SplitTime {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
};

/// With `digits` (0, 3, 6 or 9) digits after the point. Empty outside of the years 0000 to 9999,
/// which RFC 3339 can't express.
STELA_FRAMEWORK_EXPORT std::string format_rfc3339(SplitTime time, int digits);
STELA_FRAMEWORK_EXPORT std::optional<SplitTime> parse_rfc3339(std::string_view text);

/// True if every value of `Duration` is a whole number of seconds, or a fraction that nine digits
/// can express. Such points in time are written as text, others as a count.
template <class Duration>
constexpr bool has_rfc3339_form() {
  using Period = typename Duration::period;
  using Nanoseconds = std::ratio_divide<Period, std::nano>;
  return std::is_integral_v<typename Duration::rep> && Nanoseconds::den == 1 &&
         (Period::den == 1 || Period::num == 1) &&
         std::ratio_less_equal_v<Period, std::chrono::years::period>;
}

namespace detail {

__extension__ typedef __int128 Wide;

inline constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;

template <class Duration>
inline constexpr std::int64_t tick_nanoseconds =
    std::ratio_divide<typename Duration::period, std::nano>::num;

template <class Duration>
constexpr int fraction_digits() {
  constexpr std::int64_t tick = tick_nanoseconds<Duration>;
  if constexpr (tick % nanoseconds_per_second == 0) return 0;
  if constexpr (tick % 1'000'000 == 0) return 3;
  if constexpr (tick % 1'000 == 0) return 6;
  return 9;
}

}  // namespace detail

/// Empty if RFC 3339 can't express the time.
template <class Duration>
std::string format_time(std::chrono::sys_time<Duration> time) {
  using detail::Wide;
  const Wide all = Wide{time.time_since_epoch().count()} * detail::tick_nanoseconds<Duration>;
  const Wide rest = (all % detail::nanoseconds_per_second + detail::nanoseconds_per_second) %
                    detail::nanoseconds_per_second;
  const Wide seconds = (all - rest) / detail::nanoseconds_per_second;
  const auto narrow = static_cast<std::int64_t>(seconds);
  if (narrow != seconds) return {};
  return format_rfc3339({narrow, static_cast<std::uint32_t>(rest)},
                        detail::fraction_digits<Duration>());
}

/// Empty if the text isn't a time, isn't a whole number of `Duration`s, or doesn't fit.
template <class Duration>
std::optional<std::chrono::sys_time<Duration>> parse_time(std::string_view text) {
  using detail::Wide;
  const auto parsed = parse_rfc3339(text);
  if (!parsed) return std::nullopt;
  const Wide all =
      Wide{parsed->seconds} * detail::nanoseconds_per_second + Wide{parsed->nanoseconds};
  const Wide ticks = all / detail::tick_nanoseconds<Duration>;
  const auto count = static_cast<typename Duration::rep>(ticks);
  if (ticks * detail::tick_nanoseconds<Duration> != all || count != ticks) return std::nullopt;
  return std::chrono::sys_time<Duration>{Duration{count}};
}

}  // namespace stela::codec
