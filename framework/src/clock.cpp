#include <stela/framework/clock.hpp>
#include <stela/framework/codec/shapes.hpp>

#include <cstdio>
#include <ctime>

namespace stela {
namespace {

class HostClock final : public Clock {
 public:
  Timestamp now() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::now();
  }
};

/// Reads exactly `count` digits; -1 if there are others.
int read_digits(std::string_view text, std::size_t begin, std::size_t count) {
  int value = 0;
  for (std::size_t i = begin; i < begin + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

const Clock& system_clock() noexcept {
  static const HostClock clock;
  return clock;
}

std::string to_string(Timestamp time) {
  return codec::format_time(time);
}

std::optional<Timestamp> parse_timestamp(std::string_view text) {
  return codec::parse_time<std::chrono::microseconds>(text);
}

namespace codec {

std::string format_rfc3339(std::int64_t seconds, std::uint32_t nanoseconds, int digits) {
  using namespace std::chrono;
  const sys_seconds time{std::chrono::seconds{seconds}};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  char text[64];
  int size = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  std::string out{text, static_cast<std::size_t>(size)};
  if (digits > 0) {
    size = std::snprintf(text, sizeof text, ".%09u", nanoseconds);
    out.append(text, static_cast<std::size_t>(digits) + 1);
  }
  return out += 'Z';
}

std::optional<ParsedTime> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  // YYYY-MM-DDTHH:MM:SS[.digits]Z
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text.back() != 'Z') {
    return std::nullopt;
  }
  const int year_number = read_digits(text, 0, 4);
  const int month_number = read_digits(text, 5, 2);
  const int day_number = read_digits(text, 8, 2);
  const int hour = read_digits(text, 11, 2);
  const int minute = read_digits(text, 14, 2);
  const int second = read_digits(text, 17, 2);
  const year_month_day date{year{year_number}, month{static_cast<unsigned>(month_number)},
                            day{static_cast<unsigned>(day_number)}};
  if (year_number < 0 || month_number < 0 || day_number < 0 || !date.ok() || hour < 0 ||
      hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
    return std::nullopt;
  }
  std::uint32_t nanos = 0;
  if (text[19] == '.') {
    const std::size_t digits = text.size() - 21;
    const int fraction = digits >= 1 && digits <= 9 ? read_digits(text, 20, digits) : -1;
    if (fraction < 0) return std::nullopt;
    nanos = static_cast<std::uint32_t>(fraction);
    for (std::size_t i = digits; i < 9; ++i) nanos *= 10;
  } else if (text.size() != 20) {
    return std::nullopt;
  }
  const auto time = sys_days{date} + hours{hour} + minutes{minute} + seconds{second};
  return ParsedTime{time.time_since_epoch().count(), nanos};
}

}  // namespace codec
}  // namespace stela
