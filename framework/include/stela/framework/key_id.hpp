// Names of keys and of their subjects.
#pragma once

#include <stela/framework/export.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

class Keyring;

/// Identifies a key in everything that was sealed with it. Random, so it reveals nothing about the
/// subject.
struct STELA_FRAMEWORK_EXPORT KeyId {
  std::array<std::uint8_t, 16> bytes{};

  static KeyId make();
  /// As in a sealed field: 22 characters of base64url.
  std::string to_string() const;
  static std::optional<KeyId> parse(std::string_view text) noexcept;

  friend bool operator==(const KeyId& a, const KeyId& b) noexcept { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const KeyId& a, const KeyId& b) noexcept {
    return std::memcmp(a.bytes.data(), b.bytes.data(), sizeof a.bytes) <=> 0;
  }
};

/// Whose a value is: a person, by the name of a stream ("guest-m1"), and the purpose that it is
/// kept for. Each purpose of a subject is forgotten, or held, on its own.
struct Subject {
  std::string name = {};
  /// Empty: the default purpose.
  std::string purpose = {};

  friend bool operator==(const Subject&, const Subject&) = default;
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
