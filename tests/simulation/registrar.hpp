// An independent check of a history of decisions.
#pragma once

#include "simulation/enrolment.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace stela::sim {

/// What a process was told of one of its jobs.
struct Answered {
  std::string course = {};
  std::string student = {};
  /// Where its event is, or 0 for a decision that recorded nothing.
  std::int64_t sequence = 0;
  /// A decision that only looks, and never records.
  bool only_looked = false;
  /// Of a decision that recorded nothing: what it saw, and where it stood.
  Seen seen = {};
  std::int64_t position = 0;
};

/// By the number of the job. One whose process was killed for good may be missing.
using Answers = std::map<std::int64_t, Answered>;

/// Goes through all events in their order, without queries, views or tags. Empty if every decision
/// was right at its place, nothing happened twice and nothing that was acknowledged is missing;
/// otherwise the first contradiction.
std::string find_contradiction(EventStore& store, const Answers& answers);

}  // namespace stela::sim
