// The keys that personal fields are sealed with. docs/payload-sealed.md describes the format.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/export.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela {

/// Names a key in everything that was sealed with it. Random: it says nothing of the subject.
struct STELA_FRAMEWORK_EXPORT KeyId {
  std::array<std::uint8_t, 16> bytes{};

  static KeyId make();
  /// As in a sealed field: 22 characters of base64url.
  std::string to_string() const;
  static std::optional<KeyId> parse(std::string_view text) noexcept;

  friend constexpr auto operator<=>(const KeyId&, const KeyId&) = default;
};

/// Whose a value is: a person, by the name of a stream ("guest-m1"), and what it is kept for. A
/// purpose is forgotten, or held, apart from the others of its subject.
struct Subject {
  std::string name = {};
  /// Empty: the default purpose.
  std::string purpose = {};

  friend bool operator==(const Subject&, const Subject&) = default;
};

/// 32 secret bytes, kept out of swap where the system allows it, and wiped at the end.
/// Threads: any, as it doesn't change.
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
  /// Keys are numbered as they are made.
  std::int64_t number = 0;
};

/// A living key.
struct KeyInfo {
  KeyId id = {};
  Subject subject = {};
  std::int64_t number = 0;
  std::int64_t generation = 0;
  Timestamp made_at = {};
};

/// Gives the keys that a store's personal fields are sealed with. Threads: any.
class STELA_FRAMEWORK_EXPORT Keyring {
 public:
  virtual ~Keyring();

  /// The subject's key. The first time it is made, and is durable when this returns.
  /// SubjectForgotten if the subject was forgotten and isn't allowed again.
  virtual std::shared_ptr<const SubjectKey> key_of(const Subject& subject) = 0;
  /// The key with this id; null if it was destroyed. KeyMissing if it isn't known.
  virtual std::shared_ptr<const SubjectKey> find(const KeyId& id) = 0;

  /// The subject's living keys, by purpose.
  virtual std::vector<KeyInfo> keys_of(std::string_view subject) = 0;
  /// Destroys keys for good, those that it doesn't have as well: `find` gives null. How many were
  /// living. Calling it again does nothing.
  virtual std::size_t destroy(std::span<const KeyId> ids) = 0;
  /// Keys may be made again for a subject whose keys were destroyed. Those stay destroyed.
  virtual void allow_again(std::string_view subject) = 0;
};

}  // namespace stela

template <>
struct std::hash<stela::KeyId> {
  std::size_t operator()(const stela::KeyId& id) const noexcept {
    std::size_t head = 0;
    static_assert(sizeof head <= sizeof id.bytes);
    std::memcpy(&head, id.bytes.data(), sizeof head);
    return head;
  }
};
