// Key-encryption keys, and the master key that wraps them.
#pragma once

#include <stela/eventstore/keys.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace stela::keys {

/// Creates the file, unless it exists. True if it was created.
bool make_key_file(const std::string& path);

/// The unwrapped key-encryption keys of a key store in this process.
/// Threads: any number at once.
class KeyEncryptionKeys {
 public:
  KeyEncryptionKeys(MasterKey master, const Uuid& key_store);

  /// The key with this number, unwrapped by the master key. StoreFailed if it can't be unwrapped.
  std::shared_ptr<const Secret> get(std::int64_t number, std::string_view wrapped);
  /// StoreFailed if the master key's `unwrap` doesn't reverse its `wrap`.
  std::string wrap(std::int64_t number, const Secret& key) const;
  /// Drops all of them from memory.
  void clear();
  /// Uses another master key from now on.
  void set_master(MasterKey master);

 private:
  MasterKey master() const;
  /// Unwraps it with the master key; null if it is another key.
  std::shared_ptr<const Secret> unwrapped(std::int64_t number, std::string_view wrapped) const;
  /// The identity that is wrapped together with a key.
  std::string place_of(std::int64_t number) const;

  const Uuid key_store_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  MasterKey master_;
  std::map<std::int64_t, std::shared_ptr<const Secret>> keys_;
};

}  // namespace stela::keys
