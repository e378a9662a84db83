// The erasures file: records destroyed keys, for key stores that are restored from a backup.
#pragma once

#include "seal.hpp"

#include <stela/framework/clock.hpp>
#include <stela/framework/keyring.hpp>
#include <stela/framework/uuid.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace stela::keys {

/// One line for each destruction; lines are only ever added:
///
///     stela-erasure-1 NUMBER KEY-STORE TIME PREVIOUS KEY,KEY… CODE
///
/// CODE is a keyed hash of the rest of the line; PREVIOUS is the code of the key store's previous
/// record. Several key stores may share a file: each reads its own records.
/// Threads: any number at once.
class Erasures {
 public:
  /// Reads the file, if it exists.
  Erasures(std::string path, const Uuid& key_store, Secret key);

  /// The number of the last record.
  std::int64_t number() const;
  std::vector<KeyId> ids() const;
  bool contains(const KeyId& id) const;
  std::vector<std::string> problems() const;
  /// Notes that the key store has seen a record with this number.
  void expect(std::int64_t number);

  /// Adds a record of the ids that the file lacks; it is durable when this returns. StoreFull or
  /// StoreFailed if that fails, or the file has something else.
  void add(std::span<const KeyId> ids, Timestamp now);

 private:
  class File;

  void read(const File& file);
  bool is_foreign(const File& file) const;
  void take(std::string_view line);
  void follow(std::int64_t number, const KeyId& previous);
  void complain(const std::string& what);
  std::string record(std::span<const KeyId> ids, Timestamp now) const;

  const std::string path_;
  const std::string key_store_;
  const Secret key_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_set<KeyId> ids_;
  std::vector<std::string> problems_;
  /// The number and size of complete lines that were read.
  std::int64_t lines_ = 0;
  std::size_t size_ = 0;
  /// It has a line that begins like a record.
  bool has_records_ = false;
  std::int64_t number_ = 0;
  KeyId last_code_ = {};
};

/// Whether each line of the file is a record of this key store. False if it can't be read.
bool has_only_records_of(const Uuid& key_store, const std::string& path);

}  // namespace stela::keys
