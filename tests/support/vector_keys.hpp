// The key of the test vectors in docs/payload-sealed.md.
#pragma once

#include <stela/framework/keyring.hpp>
#include <stela/framework/uuid.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace stela::test {

/// Gives everybody that key.
class VectorKeys final : public Keyring {
 public:
  std::shared_ptr<const SubjectKey> key_of(const Subject&) override { return key_; }
  std::shared_ptr<const SubjectKey> find(const KeyId&) override { return key_; }
  std::vector<KeyInfo> keys_of(std::string_view) override { return {}; }
  std::size_t destroy(std::span<const KeyId>) override { return 0; }
  void allow_again(std::string_view) override {}

  /// The event of the first vector: 01020304-0506-….
  static Uuid event() {
    Uuid::Bytes id;
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::uint8_t>(i + 1);
    return Uuid{id};
  }

 private:
  static std::shared_ptr<const SubjectKey> make() {
    std::array<std::uint8_t, Secret::size> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    KeyId id;
    for (std::size_t i = 0; i < id.bytes.size(); ++i) {
      id.bytes[i] = static_cast<std::uint8_t>(0xf0 + i);
    }
    return std::make_shared<const SubjectKey>(
        SubjectKey{id, {"guest-m1", ""}, Secret{Secret::Bytes{bytes}}});
  }

  const std::shared_ptr<const SubjectKey> key_ = make();
};

}  // namespace stela::test
