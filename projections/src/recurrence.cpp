#include <stela/framework/error.hpp>
#include <stela/projections/recurrence.hpp>

#include <date/tz.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace stela::detail {
namespace {

using std::chrono::microseconds;

constexpr std::string_view every_word = "every ";
constexpr std::string_view daily_word = "daily ";
constexpr microseconds a_second = std::chrono::seconds{1};
constexpr microseconds a_day = std::chrono::hours{24};
constexpr microseconds a_century = std::chrono::years{100};

const date::time_zone& zone_of(const std::string& name) {
  try {
    return *date::locate_zone(name);
  } catch (const std::runtime_error&) {
    throw UsageError{"this host has no time zone '" + name +
                     "'; use a name of the IANA database (\"Europe/Berlin\"), and install tzdata"};
  }
}

/// The moment of this time of day on this day: the first of two, or the first valid one after it.
Timestamp on_day(const date::time_zone& zone, date::local_days day, microseconds time) {
  const auto local = date::local_time<microseconds>{day.time_since_epoch() + time};
  return zone.to_sys(local, date::choose::earliest);
}

/// The first occurrence after `after`.
Timestamp next_daily(const DailyAt& daily, Timestamp after) {
  const date::time_zone& zone = zone_of(daily.zone);
  // A clock change can move a moment to the next day, but not further.
  auto day = date::floor<date::days>(zone.to_local(after)) - date::days{1};
  for (;; day += date::days{1}) {
    const Timestamp moment = on_day(zone, day, daily.time);
    if (moment > after) return moment;
  }
}

Timestamp next_of(const Every& every, Timestamp due, Timestamp now) {
  const Timestamp next = due + every.interval;
  if (next > now) return next;
  const auto missed = (now - next) / every.interval + 1;
  return next + missed * every.interval;
}

/// "08:00:00", with its fraction if it has one.
std::string clock_text(microseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return seconds == time ? date::format("%T", seconds) : date::format("%T", time);
}

[[noreturn]] void refuse(std::string_view text) {
  throw CorruptEvent{"'" + std::string{text} + "' isn't a recurrence of a timer"};
}

/// Parses and removes a number at the front of `text`.
microseconds take_number(std::string_view whole, std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) refuse(whole);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return microseconds{number};
}

Recurrence parse(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with(every_word)) {
    rest.remove_prefix(every_word.size());
    Every every{.interval = take_number(text, rest)};
    if (!rest.empty() || every.interval.count() <= 0) refuse(text);
    return every;
  }
  if (!rest.starts_with(daily_word)) refuse(text);
  rest.remove_prefix(daily_word.size());
  const microseconds time = take_number(text, rest);
  if (!rest.starts_with(' ')) refuse(text);
  return DailyAt{time, std::string{rest.substr(1)}};
}

}  // namespace

void check_recurrence(const Recurrence& recurrence) {
  if (const auto* const every = std::get_if<Every>(&recurrence)) {
    if (every->interval < a_second) throw UsageError{"a timer's interval is at least a second"};
    if (every->interval > a_century) throw UsageError{"a timer's interval is at most a century"};
    return;
  }
  const auto& daily = std::get<DailyAt>(recurrence);
  if (daily.time.count() < 0 || daily.time >= a_day) {
    throw UsageError{"a timer's time of day must be from 0:00 to before 24:00"};
  }
  zone_of(daily.zone);
}

Timestamp first_due(const Recurrence& recurrence, Timestamp now) {
  if (const auto* const every = std::get_if<Every>(&recurrence)) return every->first;
  return next_daily(std::get<DailyAt>(recurrence), now);
}

std::string to_text(const Recurrence& recurrence) {
  if (const auto* const every = std::get_if<Every>(&recurrence)) {
    return std::string{every_word} + std::to_string(every->interval.count());
  }
  const auto& daily = std::get<DailyAt>(recurrence);
  return std::string{daily_word} + std::to_string(daily.time.count()) + ' ' + daily.zone;
}

std::string in_words(std::string_view text) {
  if (text.empty()) return {};
  const Recurrence recurrence = parse(text);
  if (const auto* const every = std::get_if<Every>(&recurrence)) {
    return "every " + clock_text(every->interval);
  }
  const auto& daily = std::get<DailyAt>(recurrence);
  return "daily at " + clock_text(daily.time) + " in " + daily.zone;
}

Timestamp next_due(std::string_view text, Timestamp due, Timestamp now) {
  const Recurrence recurrence = parse(text);
  if (const auto* const every = std::get_if<Every>(&recurrence)) return next_of(*every, due, now);
  return next_daily(std::get<DailyAt>(recurrence), std::max(due, now));
}

}  // namespace stela::detail
