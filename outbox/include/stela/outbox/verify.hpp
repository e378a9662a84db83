// Whether the outbox's tables are sound: a check for verify.
#pragma once

#include <stela/eventstore/verify.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/partitioner.hpp>

#include <memory>

namespace stela {

/// Each pointer leads to an event that is to be published, in the partition where it belongs, and
/// no event is in two states; watermarks and counts are what they say; and all events that are to
/// be published are waiting, parked, discarded or published. Nothing is wrong with a database that
/// has no outbox. Places are compared if `partitioner`, which must outlive the check, is the
/// database's.
///
///     const auto check = outbox_check();
///     IntegrityCheck* const checks[] = {check.get()};
///     StoreOperations{store}.verify(report, {.checks = checks});
STELA_OUTBOX_EXPORT std::unique_ptr<IntegrityCheck> outbox_check(
    const Partitioner& partitioner = by_stream());

}  // namespace stela
