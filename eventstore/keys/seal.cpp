#include "seal.hpp"

#include <stela/framework/uuid.hpp>

#include <sodium.h>

#include <algorithm>

namespace stela::keys {
namespace {

constexpr std::size_t nonce_size = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t tag_size = crypto_aead_xchacha20poly1305_ietf_ABYTES;
static_assert(Secret::size == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(seal_size == nonce_size + tag_size);
static_assert(Secret::size == crypto_kdf_KEYBYTES);

}  // namespace

Code code_of(std::string_view text) noexcept {
  Code code{};
  if (text.size() == code.size()) std::copy(text.begin(), text.end(), code.begin());
  return code;
}

std::string bytes_of(std::int64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text.append(bytes_of(static_cast<std::int64_t>(part.size()))).append(part);
  }
  return text;
}

std::string seal_bytes(const Secret& key, std::string_view associated,
                       std::span<const std::uint8_t> bytes) {
  std::string sealed(nonce_size + bytes.size() + tag_size, '\0');
  auto* const nonce = reinterpret_cast<unsigned char*>(sealed.data());
  system_random().fill({nonce, nonce_size});
  crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + nonce_size, nullptr, bytes.data(),
                                             bytes.size(), span_of(associated).data(),
                                             associated.size(), nullptr, nonce, key.bytes().data());
  return sealed;
}

bool unseal_bytes(const Secret& key, std::string_view associated, std::string_view sealed,
                  std::span<std::uint8_t> result) {
  if (sealed.size() != nonce_size + result.size() + tag_size) return false;
  const unsigned char* const nonce = span_of(sealed).data();
  return crypto_aead_xchacha20poly1305_ietf_decrypt(
             result.data(), nullptr, nullptr, nonce + nonce_size, sealed.size() - nonce_size,
             span_of(associated).data(), associated.size(), nonce, key.bytes().data()) == 0;
}

std::string seal(const Secret& key, std::string_view associated, const Secret& secret) {
  return seal_bytes(key, associated, secret.bytes());
}

std::optional<Secret> unseal(const Secret& key, std::string_view associated,
                             std::string_view sealed) {
  Wiped<Secret::size> secret;
  if (!unseal_bytes(key, associated, sealed, secret.bytes)) return std::nullopt;
  return Secret{secret.bytes};
}

Secret derived(const Secret& root, Purpose purpose) {
  Wiped<Secret::size> secret;
  crypto_kdf_derive_from_key(secret.bytes.data(), secret.bytes.size(),
                             static_cast<std::uint64_t>(purpose), "stelakey", root.bytes().data());
  return Secret{secret.bytes};
}

Code code_of(const Secret& key, std::string_view text) {
  Code code;
  crypto_generichash(code.data(), code.size(), span_of(text).data(), text.size(),
                     key.bytes().data(), key.bytes().size());
  return code;
}

void wipe(std::span<std::uint8_t> bytes) noexcept {
  sodium_memzero(bytes.data(), bytes.size());
}

}  // namespace stela::keys
