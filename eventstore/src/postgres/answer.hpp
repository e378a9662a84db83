// What a decision asks, answered by one statement.
#pragma once

#include "postgres/kinds.hpp"
#include "postgres/readers.hpp"

#include <stela/framework/event_store.hpp>

namespace stela::postgres {

/// Whether so many views are asked for by one statement. A scan for all of them is better from
/// there on.
bool is_answerable(const DecisionQuestion& question) noexcept;

/// The answer, all of it as of one snapshot, durable before it is given. Whether the tags are there
/// that it needs isn't looked at. UsageError if a part can't be asked for.
DecisionAnswer answer(Reading& reading, KindTable& kinds, const DecisionQuestion& question);

}  // namespace stela::postgres
