// What commands on events share: the event that is asked for, and look-ups by correlation or cause.
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

/// So many events around the time of an id are looked at for it.
inline constexpr std::int64_t most_near = 100'000;
inline constexpr Option look_for_id_option{
    "--look-further", "", "look for an id among more than the 100,000 events around its time"};

/// By its sequence or id, the first operand. Exit if there is no such event.
GlobalSequence event_asked_for(Invocation& call, StoreSession& session);

/// What --correlation or --causation selects; nothing if neither is given. Misuse with options that
/// select otherwise.
std::optional<LinkQuery> links_asked_for(const Arguments& given);

/// Says that events weren't looked at.
void note_skipped(Invocation& call, std::int64_t events);

}  // namespace stela::tool
