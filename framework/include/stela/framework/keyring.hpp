// The keys that personal fields are sealed with. docs/payload-sealed.md describes the format.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/key_id.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela {

/// 32 secret bytes, kept out of swap where the system allows it, and wiped at the end. Threads:
/// any, because it doesn't change.
class STELA_FRAMEWORK_EXPORT Secret {
 public:
  static constexpr std::size_t size = 32;
  using Bytes = std::span<const std::uint8_t, size>;

  explicit Secret(Bytes bytes);
  static Secret random();
  ~Secret();
  Secret(Secret&& other) noexcept : bytes_{std::exchange(other.bytes_, nullptr)} {}
  Secret& operator=(Secret&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  Bytes bytes() const noexcept { return Bytes{bytes_, size}; }

 private:
  Secret();
  std::uint8_t* bytes_;
};

/// A key of a subject. Threads: any.
struct SubjectKey {
  KeyId id;
  Subject subject;
  Secret secret;
  /// Keys are numbered in the order of their creation.
  std::int64_t number = 0;
};

/// Keeps the data of a subject and a purpose from being forgotten.
struct KeyHold {
  /// Unset: until it is released.
  std::optional<Timestamp> until = {};
  std::string reason = {};
};

/// A living key.
struct KeyInfo {
  KeyId id = {};
  Subject subject = {};
  std::int64_t number = 0;
  std::int64_t generation = 0;
  Timestamp made_at = {};
  /// The hold in force. Only set if the keyring was asked for a subject's keys.
  std::optional<KeyHold> hold = {};
};

/// Provides the keys of a store's personal fields. Threads: any.
class STELA_FRAMEWORK_EXPORT Keyring {
 public:
  virtual ~Keyring();

  /// The subject's key. The first call creates it; it is durable when the call returns.
  /// SubjectForgotten if the subject was forgotten and isn't allowed again.
  virtual std::shared_ptr<const SubjectKey> key_of(const Subject& subject) = 0;
  /// The key with this id; null if it was destroyed. KeyMissing if it is unknown.
  virtual std::shared_ptr<const SubjectKey> find(const KeyId& id) = 0;

  /// The subject's living keys, by purpose.
  virtual std::vector<KeyInfo> keys_of(std::string_view subject) = 0;
  /// Destroys keys for good, even those that it doesn't have: `find` returns null for them. Returns
  /// how many were living. Calling it again does nothing.
  virtual std::size_t destroy(std::span<const KeyId> ids) = 0;
  /// Allows new keys for a subject whose keys were destroyed. Destroyed keys stay destroyed.
  virtual void allow_again(std::string_view subject) = 0;
};

}  // namespace stela
