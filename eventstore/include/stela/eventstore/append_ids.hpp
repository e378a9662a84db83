// The ids under which appends can be repeated, and how long they are kept.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>

namespace stela {

struct PurgeAppendIdsOptions {
  /// Only counts them.
  bool dry_run = false;
  /// In ids that were looked at. Called between batches.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct PurgedAppendIds {
  /// How many were removed; with dry_run, would be.
  std::int64_t ids = 0;
  /// False if it was stopped.
  bool finished = true;
};

/// Removes the append ids that were used before `before`. Nothing else does: an id is kept for
/// ever unless it is purged. An append that repeats a purged id isn't a repetition any more: it
/// appends its events again. So purge what is older than anybody's last attempt can be.
/// They go a batch at a time, each in a short transaction. StoreBusy, StoreFull, StoreFailed as
/// their names say; what was removed before stays removed.
/// Threads: any number at once, beside writers.
STELA_EVENTSTORE_EXPORT PurgedAppendIds purge_append_ids(Store& store, Timestamp before,
                                                         const PurgeAppendIdsOptions& options = {});

}  // namespace stela
