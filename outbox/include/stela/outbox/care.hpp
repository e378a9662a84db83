// The outbox in the care of a store: verify, export, import.
#pragma once

#include <stela/eventstore/transfer.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>

#include <memory>

namespace stela {

/// Checks the outbox's tables. Each pointer must lead to a publishable event, in the right
/// partition, and no event may be in two states. Watermarks and counts must be correct. Every
/// publishable event must be pending, parked, discarded or published. A database without an outbox
/// has no problems. Partitions are compared only if `partitioner`, which must outlive the check, is
/// the database's.
///
///     const auto check = outbox_check();
///     IntegrityCheck* const checks[] = {check.get()};
///     StoreOperations{store}.verify(report, {.checks = checks});
STELA_OUTBOX_EXPORT std::unique_ptr<IntegrityCheck> outbox_check(
    const Partitioner& partitioner = by_stream());

/// Moves the outbox with its store: pending, parked, discarded and redelivered messages, each
/// partition's position at the broker, and the logs. A relay on the new database continues where
/// the last one ended. `export_store` throws UsageError while a worker owns a partition,
/// `import_store` if the store has an outbox already.
///
///     const auto outbox = outbox_state();
///     StateTransfer* const states[] = {outbox.get()};
///     export_store(store, out, {.states = states});
STELA_OUTBOX_EXPORT std::unique_ptr<StateTransfer> outbox_state();

}  // namespace stela
