// Keys in memory, for a minute.
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

/// Holds keys in two generations. The younger one becomes the older one, whose keys are dropped,
/// when it is full or half a minute old: so a key stays for a minute at most, however often it is
/// used. Threads: any number at once.
class KeyCache {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KeyCache(std::size_t most) noexcept : most_{most / 2} {}

  Key find(const Subject& subject) const;
  /// The null key for one that was destroyed; nothing if it isn't here.
  std::optional<Key> find(const KeyId& id) const;

  /// Another one after `clear`.
  std::uint64_t epoch() const;
  /// Unless the epoch was another one: what was read may have been destroyed since. A null key says
  /// that `id` was destroyed.
  void add(const KeyId& id, const Key& key, std::uint64_t epoch);
  void clear();
  /// Drops what is too old.
  void age(Time now);

 private:
  static constexpr std::chrono::seconds half_life{30};

  struct SubjectHash {
    std::size_t operator()(const Subject& subject) const noexcept;
  };
  struct Generation {
    std::unordered_map<KeyId, Key> by_id = {};
    std::unordered_map<Subject, Key, SubjectHash> by_subject = {};
  };
  void turn(Time now);

  const std::size_t most_;
  mutable std::shared_mutex mutex_;
  // Guarded by mutex_.
  Generation young_;
  Generation old_;
  std::uint64_t epoch_ = 0;
  Time turned_at_ = {};
  Time now_ = {};
};

}  // namespace stela::keys
