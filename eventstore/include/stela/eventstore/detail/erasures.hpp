// Forgetting again what a restored backup brought back.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace stela {

/// KeysBehind if `keys` aren't those that the store's fields are sealed with, or lack some of them.
STELA_EVENTSTORE_EXPORT void check_key_store(Store& store, Keys& keys);

/// Whether a field was ever sealed in this database.
STELA_EVENTSTORE_EXPORT bool has_personal_fields(Store& store);

/// What a store and its key store didn't agree on.
struct ReappliedErasures {
  /// Keys that lived though the store, or the file of erasures, has them as forgotten. That file is
  /// applied as keys are opened, unless they are opened read-only.
  std::int64_t to_destroy = 0;
  /// Destroyed keys that the store didn't have as forgotten.
  std::int64_t to_fence = 0;
  /// Events that forget some of those that lived: they were brought back from the broker. Keys of
  /// somebody else, and those that a hold keeps, aren't among them.
  std::vector<GlobalSequence> events = {};
};

/// Compares all of both, and makes them agree; with `dry_run` it only counts. Opening a store with
/// its keys does the same once it notices that they differ. `store` needn't be opened with keys.
/// KeysBehind as above.
STELA_EVENTSTORE_EXPORT ReappliedErasures reapply_erasures(Store& store, Keys& keys, bool dry_run);

/// Notes in the store that these keys are forgotten, without an event: nothing more is sealed with
/// them, and `reapply_erasures` destroys them. How many the store didn't have.
STELA_EVENTSTORE_EXPORT std::int64_t fence_keys(Store& store, std::span<const KeyId> ids);

}  // namespace stela
