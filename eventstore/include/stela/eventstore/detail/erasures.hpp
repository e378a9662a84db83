// Repeats erasures that a restored backup undid.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stela {

/// KeysBehind if the store's fields weren't sealed with `keys`, or if `keys` lacks some of their
/// keys. UsageError if the store has no keys yet, and `keys` has some.
STELA_EVENTSTORE_EXPORT void check_key_store(Store& store, Keys& keys);

/// Whether a field was ever sealed in this database.
STELA_EVENTSTORE_EXPORT bool has_personal_fields(Store& store);

/// The differences between a store and its key store.
struct ReappliedErasures {
  /// Living keys that are forgotten according to the store or the erasures file. That file is
  /// applied when keys are opened, unless they are opened read-only.
  std::int64_t to_destroy = 0;
  /// Destroyed keys that weren't forgotten in the store.
  std::int64_t to_fence = 0;
  /// How many of those only an event forgets, which was read back from the broker: it may be
  /// forged. Other people's keys, and keys under a hold, don't count.
  std::int64_t by_events = 0;
  std::vector<GlobalSequence> events = {};
};

/// Compares the store with the key store completely, and makes them agree; with `dry_run` it only
/// counts. Opening a store with its keys does the same once it notices a difference. `store`
/// needn't be opened with keys. KeysBehind as above.
STELA_EVENTSTORE_EXPORT ReappliedErasures reapply_erasures(Store& store, Keys& keys, bool dry_run);

/// The event that forgot the key: 0 if the store learnt of it from the key store; unset if the
/// store doesn't have it as forgotten.
STELA_EVENTSTORE_EXPORT std::optional<GlobalSequence> fence_of(Store& store, const KeyId& id);

/// Clears stored error texts that may quote what was forgotten: a process that still had a value
/// may have written one since.
STELA_EVENTSTORE_EXPORT void clear_error_texts(Store& store);

/// Records in the store that these keys are forgotten, without an event: no later field is sealed
/// with them, and `reapply_erasures` destroys them. Returns how many weren't recorded before.
STELA_EVENTSTORE_EXPORT std::int64_t fence_keys(Store& store, std::span<const KeyId> ids);

}  // namespace stela
