// Descriptions of the outbox: status, messages, results of operations.
#pragma once

#include "description/description.hpp"

#include <stela/outbox/messages.hpp>
#include <stela/outbox/operations.hpp>

#include <string>
#include <vector>

namespace stela::tool {

/// A partition with its outbox, which holds the time and the fence.
struct PartitionIn {
  const PartitionStatus& partition;
  const OutboxStatus& outbox;
};
std::vector<PartitionIn> partitions_of(const OutboxStatus& status);

/// "#417", or "between #400 and #417". Empty if it is unknown.
std::string broker_place_of(const OutboxMessage& message);

/// "p00 p03".
std::string labels_of(const std::vector<PartitionId>& partitions);

namespace description {

extern const Description<OutboxStatus> outbox_status;
extern const Description<PartitionIn> partition;
extern const Description<WorkerStatus> worker;
extern const Description<OutboxMessage> message;

extern const Description<Affected> affected;
extern const Description<ParkedRun> parked_run;
extern const Description<AppliedPlan> applied_plan;
extern const Description<FailureGroup> failure_group;
extern const Description<Compared> compared;
extern const Description<StrayEvent> stray_event;
extern const Description<AppliedImport> applied_import;
extern const Description<Purged> purged;
extern const Description<Reconciled> reconciled;
extern const Description<Resized> resized;
extern const Description<Synced> synced;

}  // namespace description
}  // namespace stela::tool
