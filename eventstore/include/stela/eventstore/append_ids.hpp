// How StoreOperations removes the ids under which appends can be repeated.
#pragma once

#include <stela/eventstore/progress.hpp>

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

}  // namespace stela
