// Answers a decision's question by one statement.
#pragma once

#include "postgres/kinds.hpp"
#include "postgres/reading.hpp"

#include <stela/framework/event_store.hpp>

namespace stela::postgres {

/// Whether one statement may ask for this many views. Beyond that, a scan is faster.
bool is_answerable(const DecisionQuestion& question) noexcept;

/// The answer, from one snapshot, returned once it is durable. It doesn't check whether the
/// required tags exist. UsageError for an invalid part.
DecisionAnswer answer(Reading& reading, KindTable& kinds, const DecisionQuestion& question);

}  // namespace stela::postgres
