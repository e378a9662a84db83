// The state of reactions and processes, for `export_store` and `import_store`.
#pragma once

#include <stela/eventstore/transfer.hpp>
#include <stela/projections/export.hpp>

#include <memory>

namespace stela {

/// Moves reactions and processes with their store: checkpoints, parked events, timers with
/// everything that makes them fire only once, holds and the log of operators' actions. Projectors
/// must be rebuilt. `export_store` throws UsageError while a runner drives a reaction or a process,
/// `import_store` if the store already has one. Imported timers are held until
/// `TimerOperations::resume`, like those of a restored backup: two databases that fire them would
/// do everything twice.
///
///     const auto outbox = outbox_state();
///     const auto projections = projection_state();
///     StateTransfer* const states[] = {outbox.get(), projections.get()};
///     export_store(store, out, {.states = states});
STELA_PROJECTIONS_EXPORT std::unique_ptr<StateTransfer> projection_state();

}  // namespace stela
