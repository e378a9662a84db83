// What must hold for messages that somebody deletes at the broker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stela::chaos {

/// A message of an event that counted as published.
struct Deletion {
  std::string broker_stream;
  std::uint64_t broker_sequence = 0;
  std::int64_t event = 0;
  std::string event_id;
};

/// An event that is published, as it stands when everything has drained.
struct Outcome {
  std::int64_t event = 0;
  std::string stream = {};
  std::int64_t version = 0;
  bool is_deleted = false;
  bool is_at_broker = false;
  bool has_effect = false;
};

/// Versions of a stream that a consumer noted as missing: those behind `after`, up to `missing`.
struct NotedGap {
  std::string stream;
  std::int64_t after = 0;
  std::int64_t missing = 0;
};

/// What doesn't hold. A deleted message isn't sent again unasked; a comparison with the broker
/// misses it, and nothing else; a consumer that hadn't handled it notes a gap there, and nowhere
/// else, once it handles what comes later in the stream. `outcomes` are in the order of events.
std::vector<std::string> flaws_of_deletions(const std::vector<Outcome>& outcomes,
                                            const std::vector<NotedGap>& gaps,
                                            const std::vector<std::int64_t>& missed_by_comparison);

}  // namespace stela::chaos
