// Keeps keys in memory for a minute.
#pragma once

#include <stela/framework/keyring.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

namespace stela::keys {

using Key = std::shared_ptr<const SubjectKey>;

/// Drops all keys when it is full, and once a minute: no key stays longer, however often it is
/// used. Threads: any number at once.
class KeyCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KeyCache(std::size_t most) noexcept : most_{most} {}

  Key find(const Subject& subject) const;
  /// The null key for a destroyed one; nothing if it isn't cached.
  std::optional<Key> find(const KeyId& id) const;

  /// Changes with each `clear`.
  std::uint64_t epoch() const;
  /// Does nothing if the epoch has changed: the key may have been destroyed since it was read. A
  /// null key records that `id` was destroyed.
  void add(const KeyId& id, const Key& key, std::uint64_t epoch);
  void clear();
  /// Drops keys that are too old. Call it at this interval, so that no key stays longer than a
  /// minute.
  void age(Time now);
  static constexpr std::chrono::seconds aging_interval{5};

 private:
  static constexpr std::chrono::seconds longest = std::chrono::minutes{1} - aging_interval;

  struct SubjectHash {
    std::size_t operator()(const Subject& subject) const noexcept;
  };
  void drop(Time now);

  const std::size_t most_;
  mutable std::shared_mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<KeyId, Key> by_id_;
  std::unordered_map<Subject, Key, SubjectHash> by_subject_;
  std::uint64_t epoch_ = 0;
  Time dropped_at_ = {};
  Time now_ = {};
};

}  // namespace stela::keys
