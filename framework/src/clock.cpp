#include <stela/framework/clock.hpp>
#include <stela/framework/codec/rfc3339.hpp>

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

/// Reads exactly `count` digits. -1 if there are other characters.
int read_digits(std::string_view text, std::size_t begin, std::size_t count) {
  int value = 0;
  for (std::size_t i = begin; i < begin + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

void write_digits(std::string& text, std::size_t begin, std::size_t count, unsigned value) {
  for (std::size_t i = begin + count; i-- > begin; value /= 10) {
    text[i] = static_cast<char>('0' + value % 10);
  }
}

/// The first and the last second of the years 0000 to 9999.
constexpr std::int64_t first_second = -62'167'219'200;
constexpr std::int64_t last_second = 253'402'300'799;

}  // namespace

const Clock& system_clock() noexcept {
  static const HostClock clock;
  return clock;
}

std::string to_string(Timestamp time) {
  std::string text = codec::format_time(time);
  if (!text.empty()) return text;
  return time < Timestamp{} ? "0000-01-01T00:00:00.000000Z" : "9999-12-31T23:59:59.999999Z";
}

std::optional<Timestamp> parse_timestamp(std::string_view text) {
  return codec::parse_time<std::chrono::microseconds>(text);
}

namespace codec {

std::string format_rfc3339(SplitTime split, int digits) {
  using namespace std::chrono;
  if (split.seconds < first_second || split.seconds > last_second) return {};
  const sys_seconds time{seconds{split.seconds}};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  std::string text = "0000-00-00T00:00:00";
  write_digits(text, 0, 4, static_cast<unsigned>(static_cast<int>(date.year())));
  write_digits(text, 5, 2, static_cast<unsigned>(date.month()));
  write_digits(text, 8, 2, static_cast<unsigned>(date.day()));
  write_digits(text, 11, 2, static_cast<unsigned>(clock.hours().count()));
  write_digits(text, 14, 2, static_cast<unsigned>(clock.minutes().count()));
  write_digits(text, 17, 2, static_cast<unsigned>(clock.seconds().count()));
  if (digits > 0) {
    text += ".000000000";
    write_digits(text, 20, 9, split.nanoseconds);
    text.resize(20 + static_cast<std::size_t>(digits));
  }
  return text += 'Z';
}

std::optional<SplitTime> parse_rfc3339(std::string_view text) {
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
  return SplitTime{time.time_since_epoch().count(), nanos};
}

}  // namespace codec
}  // namespace stela
