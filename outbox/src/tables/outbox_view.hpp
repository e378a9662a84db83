// The operators' reading of the outbox.
#pragma once

#include "database/connection.hpp"
#include "database/database.hpp"
#include "tables/locator.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/messages.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace stela::outbox {

/// Partitions, workers and generations at one moment.
OutboxStatus read_status(database::Connection& connection, database::Database& database);

/// Threads: one at a time.
class OutboxView {
 public:
  OutboxView(Store& store, const Partitioner& partitioner) noexcept
      : store_{store}, partitioner_{partitioner} {}

  OutboxStatus status();
  MessagePage page(const MessageQuery& query);
  std::optional<OutboxMessage> show(GlobalSequence sequence);
  std::vector<PublishedBatch> batches(std::optional<PartitionId> partition, int limit);
  std::vector<OperatorAction> actions(const ActionQuery& query);

 private:
  /// UsageError if it doesn't exist and has no pending messages.
  void require_partition(PartitionId partition);

  Store& store_;
  const Partitioner& partitioner_;
};

}  // namespace stela::outbox
