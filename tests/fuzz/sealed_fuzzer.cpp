// Any bytes as a sealed field, and as an event that has one: it opens as what was sealed, or not at
// all.
#include "fuzz/fuzzer.hpp"

#include <stela/framework.hpp>
#include <stela/framework/personal.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace stela::fuzz {
namespace {

/// The key and the value of the vectors in docs/payload-sealed.md; the corpus has their boxes.
class VectorKeys final : public Keyring {
 public:
  std::shared_ptr<const SubjectKey> key_of(const Subject&) override { return key_; }
  std::shared_ptr<const SubjectKey> find(const KeyId&) override { return key_; }
  std::vector<KeyInfo> keys_of(std::string_view) override { return {}; }
  std::size_t destroy(std::span<const KeyId>) override { return 0; }
  void allow_again(std::string_view) override {}

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
  std::shared_ptr<const SubjectKey> key_ = make();
};
constexpr std::string_view sealed = "Elm Street 1";

struct Moved {
  static constexpr EventType event_type{"guest.moved", 1, local};
  Personal<std::string> address;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address));
  }
};

/// The refusals that a reader of bytes must expect.
template <class F>
void unless_refused(F&& read) {
  try {
    read();
  } catch (const codec::DecodeError&) {
  } catch (const CorruptEvent&) {
  }
}

void read_field(const codec::Opening& opening, std::string_view bytes, bool is_text) {
  const auto field = codec::read_sealed(&opening, is_text ? "address" : "0", bytes, is_text);
  if (field->key == nullptr) return;
  const Codec codec = is_text ? Codec::json : Codec::portable_binary;
  require(codec::decode<std::string>(codec, field->open()) == sealed, "only what was sealed opens");
}

}  // namespace
}  // namespace stela::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stela;
  static fuzz::VectorKeys keys;
  Uuid::Bytes id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::uint8_t>(i + 1);
  const codec::Opening opening{&keys, codec::Place::of_event(Uuid{id})};
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::unless_refused([&] { fuzz::read_field(opening, bytes, true); });
  fuzz::unless_refused([&] { fuzz::read_field(opening, bytes, false); });
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    fuzz::unless_refused([&] {
      codec::decode<fuzz::Moved>(codec, bytes, &opening).address.if_open([](const std::string& v) {
        fuzz::require(v == fuzz::sealed, "only what was sealed opens");
      });
    });
  }
  return 0;
}
