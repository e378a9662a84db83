// What operators see of the past: written by the modules, in the transaction that changes a state.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::database {

/// A state that is another one from now on.
struct StateChange {
  /// "outbox", "projections", "inbox".
  std::string_view part;
  /// What changed: a partition, a worker, a projector, a consumer.
  std::string_view subject;
  std::string_view what;
  /// The operator; empty if nobody asked for it.
  std::string_view who = {};
  std::string_view detail = {};
};

/// Keeps the last 100,000 of 90 days.
STELA_EVENTSTORE_EXPORT void note(Connection& connection, Timestamp at, const StateChange& change);

/// Somebody has the lease of another, who didn't release it.
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

/// Unless there is one of this minute. A series beyond the 40th isn't kept.
STELA_EVENTSTORE_EXPORT void sample(Connection& connection, Timestamp at,
                                    std::span<const Sample> samples);

/// Which minute the time is in, from 1970 on.
STELA_EVENTSTORE_EXPORT std::int64_t minute_of(Timestamp at) noexcept;

}  // namespace stela::database
