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

/// Makes the file, unless there is one. True if it did.
bool make_key_file(const std::string& path);

/// The key-encryption keys of a key store that this process has unwrapped.
/// Threads: any number at once.
class KeyEncryptionKeys {
 public:
  KeyEncryptionKeys(MasterKey master, const Uuid& key_store);

  /// The one with this number, which the master key wrapped. StoreFailed if it can't be unwrapped.
  std::shared_ptr<const Secret> get(std::int64_t number, std::string_view wrapped);
  /// StoreFailed if the master key's `unwrap` doesn't take back what its `wrap` gives.
  std::string wrap(std::int64_t number, const Secret& key) const;
  /// None of them is in memory any more.
  void clear();
  /// Another master key from now on.
  void set_master(MasterKey master);

 private:
  MasterKey master() const;
  /// Null if it isn't this one.
  std::shared_ptr<const Secret> unwrapped(std::int64_t number, std::string_view wrapped) const;
  /// What is wrapped along with a key.
  std::string place_of(std::int64_t number) const;

  const Uuid key_store_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  MasterKey master_;
  std::map<std::int64_t, std::shared_ptr<const Secret>> keys_;
};

}  // namespace stela::keys
