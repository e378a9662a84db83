// The form in which problems name events.
#pragma once

#include <cstdint>
#include <string>

namespace stela {

inline std::string event_number(std::int64_t sequence) {
  return "event " + std::to_string(sequence);
}

inline std::string event_range(std::int64_t first, std::int64_t last) {
  if (first == last) return event_number(first);
  return "events " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace stela
