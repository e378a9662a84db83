// Shared by commands on events: finds the event asked for, and events by correlation or cause.
#pragma once

#include "cli/invocation.hpp"

#include <stela/eventstore/operations.hpp>

#include <cstdint>
#include <optional>

namespace stela::tool {

class StoreSession;

inline constexpr Option correlation_option{"--correlation", "ID",
                                           "only events of this correlation"};
inline constexpr Option causation_option{"--causation", "ID",
                                         "only effects of the event of this id"};

/// The number of events to search around the time of an id.
inline constexpr std::int64_t most_near = 100'000;
inline constexpr Option look_for_id_option{
    "--look-further", "", "look for an id among more than the 100,000 events around its time"};

/// Finds an event by its sequence or id, the first operand. Exit if there is none.
GlobalSequence event_asked_for(Invocation& call, StoreSession& session);

/// The selection of --correlation or --causation. Empty if neither is given. Misuse with other
/// selecting options.
std::optional<LinkQuery> links_asked_for(const Arguments& given);

/// Tells that some events weren't searched.
void note_skipped(Invocation& call, std::int64_t events);

}  // namespace stela::tool
