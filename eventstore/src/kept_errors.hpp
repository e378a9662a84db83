// Texts of errors that may quote values of somebody who is forgotten. The one place of the event
// store that knows the tables of the modules beside it.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/key_id.hpp>

#include <span>

namespace stela {

/// Clears the texts that were kept of payloads with fields that are sealed with these keys. Before
/// the keys are destroyed: whoever completes an interrupted forgetting does it again. If it fails
/// that is logged.
void clear_kept_errors(Store& store, std::span<const KeyId> keys);

}  // namespace stela
