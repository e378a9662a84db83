// Any bytes as a sealed field, and as an event that has one: it opens as what was sealed, or not at
// all.
#include "fuzz/fuzzer.hpp"
#include "support/moved.hpp"
#include "support/vector_keys.hpp"

#include <stela/framework.hpp>
#include <stela/framework/personal.hpp>

#include <string>

namespace stela::fuzz {
namespace {

using test::Moved;

/// The value of the vectors, whose boxes the corpus has.
constexpr std::string_view sealed = "Elm Street 1";

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
  static test::VectorKeys keys;
  const codec::Opening opening{&keys, codec::Place::of_event(test::VectorKeys::event())};
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
