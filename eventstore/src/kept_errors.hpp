// Stored error texts that may quote values of a forgotten person. This is the only part of the
// event store that knows other modules' tables.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/key_id.hpp>

#include <span>

namespace stela {

/// Clears stored error texts about payloads with fields sealed with these keys. Call it before the
/// keys are destroyed, so that completing an interrupted forgetting repeats it.
void clear_kept_errors(Store& store, std::span<const KeyId> keys);

}  // namespace stela
