// Keys sealed by other keys, and codes made with them.
#pragma once

#include <stela/framework/keyring.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::keys {

using Code = std::array<std::uint8_t, 16>;

/// The bytes as text, for SQL and files.
inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::uint8_t> span_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
/// All zero if `text` has another size.
Code code_of(std::string_view text) noexcept;

/// Joins parts with their lengths, so that different lists never give the same text.
std::string joined(std::initializer_list<std::string_view> parts);
/// The number as eight bytes.
std::string bytes_of(std::int64_t number);

/// How many bytes sealing adds.
inline constexpr std::size_t seal_size = 40;

/// XChaCha20-Poly1305: nonce, ciphertext, tag.
std::string seal(const Secret& key, std::string_view associated, const Secret& secret);
/// Nothing if another key or other associated data sealed it, or if it was changed.
std::optional<Secret> unseal(const Secret& key, std::string_view associated,
                             std::string_view sealed);
/// The same for any bytes. The caller must wipe the result of `unseal_bytes`.
std::string seal_bytes(const Secret& key, std::string_view associated,
                       std::span<const std::uint8_t> bytes);
bool unseal_bytes(const Secret& key, std::string_view associated, std::string_view sealed,
                  std::span<std::uint8_t> result);

enum class Purpose : std::uint8_t { binding = 1, erasures = 2 };
Secret derived(const Secret& root, Purpose purpose);

/// A keyed hash.
Code code_of(const Secret& key, std::string_view text);

void wipe(std::span<std::uint8_t> bytes) noexcept;

/// Bytes on the stack that are wiped at the end.
template <std::size_t n>
struct Wiped {
  std::array<std::uint8_t, n> bytes{};

  Wiped() = default;
  ~Wiped() { wipe(bytes); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
};
}  // namespace stela::keys
