// Time in Stela: wall time for records, steady time for deadlines.
#pragma once

#include <stela/framework/export.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

/// Wall time in UTC, in whole microseconds, as in the store and in messages.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// The source of time. Tests can replace it. Threads: an implementation must allow calls from any
/// thread.
class STELA_FRAMEWORK_EXPORT Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() const = 0;
  virtual std::chrono::steady_clock::time_point steady_now() const = 0;
};

/// The host's clocks.
STELA_FRAMEWORK_EXPORT const Clock& system_clock() noexcept;

/// RFC 3339 in UTC with six digits: "2026-11-21T11:34:00.000000Z". A time outside of the years 0000
/// to 9999 is shown as the nearest one inside.
STELA_FRAMEWORK_EXPORT std::string to_string(Timestamp time);

/// Parses what `to_string` writes, with zero to nine digits after the point. Empty for any other
/// text.
STELA_FRAMEWORK_EXPORT std::optional<Timestamp> parse_timestamp(std::string_view text);

}  // namespace stela
