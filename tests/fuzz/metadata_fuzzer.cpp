// Any bytes as the stored metadata of an event.
#include "fuzz/fuzzer.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/detail/metadata.hpp>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stela;
  try {
    const Context context = metadata::decode(fuzz::text_of(data, size));
    fuzz::require(metadata::decode(metadata::encode(context)) == context,
                  "a context is read as it is written");
  } catch (const codec::DecodeError&) {
    return 0;
  }
  return 0;
}
