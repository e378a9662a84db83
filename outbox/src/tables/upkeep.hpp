// What has to be done to an outbox now and then.
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
  /// At most so many transactions.
  int max_steps = 1'000'000;
  Mode mode = Mode::carry_out;
};

/// Removes what is old from the logs, in short transactions.
Purged purge(Store& store, const PurgeOptions& options);

using OnProgress = std::function<void(const Progress&)>;

struct RepublishRequest {
  const RepublishSelection& selection;
  Mode mode = Mode::carry_out;
  std::string_view who = {};
  OnProgress progress = {};
  std::stop_token stop = {};
};

/// Sends again what is published, up to what is the last event now.
Affected republish(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                   const RepublishRequest& request);

struct ReconcileRequest {
  GlobalSequence from{1};
  Mode mode = Mode::carry_out;
  std::string_view who = {};
  OnProgress progress = {};
};

/// Finds events that are in no state, and enqueues them.
Reconciled reconcile(Store& store, StoredOperations& operations, const Partitioner& partitioner,
                     const ReconcileRequest& request);

/// Adds the partitions that are missing; with `prune`, retires those that nobody needs.
Synced sync(Store& store, bool prune, Mode mode, std::string_view who);

}  // namespace stela::outbox
