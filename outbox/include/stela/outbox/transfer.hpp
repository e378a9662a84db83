// The outbox's state, for `export_store` and `import_store`.
#pragma once

#include <stela/eventstore/transfer.hpp>
#include <stela/outbox/export.hpp>

#include <memory>

namespace stela {

/// Moves the outbox with its store: what is pending, parked, discarded and to be sent again, how
/// far each partition is at the broker, and the logs. A relay on the new database continues where
/// the last one ended. `export_store` throws UsageError while a worker owns a partition,
/// `import_store` if the store has an outbox already.
///
///     const auto outbox = outbox_state();
///     StateTransfer* const states[] = {outbox.get()};
///     export_store(store, out, {.states = states});
STELA_OUTBOX_EXPORT std::unique_ptr<StateTransfer> outbox_state();

}  // namespace stela
