// Options and result of purging append ids: `StoreOperations::purge_append_ids`.
#pragma once

#include <stela/eventstore/progress.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>

namespace stela {

struct PurgeAppendIdsOptions {
  /// Counts the ids and removes none.
  bool dry_run = false;
  /// Counts the ids that were examined. Called between batches.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct PurgedAppendIds {
  /// How many ids were removed, or would be with `dry_run`.
  std::int64_t ids = 0;
  /// False if the purge was stopped.
  bool finished = true;
};

}  // namespace stela
