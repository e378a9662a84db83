// The outbox's check for `StoreOperations::verify`.
#pragma once

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

}  // namespace stela
