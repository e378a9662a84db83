// Maintenance of an outbox.
#pragma once

#include "tables/stored_operations.hpp"

#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/outbox/operations.hpp>

#include <chrono>
#include <functional>
#include <stop_token>
#include <string_view>

namespace stela::outbox {

struct PurgeOptions {
  std::chrono::hours older_than{168};
  /// How many transactions at most.
  int max_steps = 1'000'000;
  Mode mode = Mode::carry_out;
};

/// Removes old entries from the logs, in short transactions.
Purged purge(Store& store, const PurgeOptions& options);

using OnProgress = std::function<void(const Progress&)>;

struct RepublishRequest {
  const RepublishSelection& selection;
  Mode mode = Mode::carry_out;
  std::string_view who = {};
  OnProgress progress = {};
  std::stop_token stop = {};
};

/// Resends published events, up to the present last event.
Affected republish(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                   const RepublishRequest& request);

struct ReconcileRequest {
  GlobalSequence from{1};
  Mode mode = Mode::carry_out;
  std::string_view who = {};
  OnProgress progress = {};
};

/// Finds events without any state, and enqueues them.
Reconciled reconcile(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                     const ReconcileRequest& request);

/// Adds missing partitions; with `prune`, retires unneeded ones.
Synced sync(Store& store, bool prune, Mode mode, std::string_view who);

}  // namespace stela::outbox
