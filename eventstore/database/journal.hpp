// The history that operators see: written by modules, in the transaction that changes a state.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::database {

/// A change of state.
struct StateChange {
  /// "outbox", "projections", "inbox".
  std::string_view part;
  /// The partition, worker, projector or consumer that changed.
  std::string_view subject;
  std::string_view what;
  /// The operator; empty for a change that nobody ordered.
  std::string_view who = {};
  std::string_view detail = {};
};

/// Keeps the last 100,000 entries of the last 90 days.
STELA_EVENTSTORE_EXPORT void note(Connection& connection, Timestamp at, const StateChange& change);

/// The takeover of a lease that its former owner didn't release.
struct Takeover {
  std::string_view part;
  std::string_view subject;
  std::string_view from;
  std::string_view to;
};
STELA_EVENTSTORE_EXPORT void note(Connection& connection, Timestamp at, const Takeover& takeover);

struct Sample {
  std::string name;
  std::int64_t value = 0;
};

/// Adds samples, unless this minute has some. Series beyond the 40th aren't kept.
STELA_EVENTSTORE_EXPORT void sample(Connection& connection, Timestamp at,
                                    std::span<const Sample> samples);

/// The minute of a time, counted from 1970.
STELA_EVENTSTORE_EXPORT std::int64_t minute_of(Timestamp at) noexcept;

}  // namespace stela::database
