// Any bytes as an event: it decodes, or is a DecodeError; what decodes comes back the same.
#include "fuzz/fuzzer.hpp"
#include "support/rich_event.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stela;
  test::RichEvent event;
  try {
    codec::decode(Codec::json, fuzz::text_of(data, size), event);
  } catch (const codec::DecodeError&) {
    return 0;
  }
  std::string bytes;
  try {
    codec::encode(Codec::json, event, bytes);
  } catch (const codec::EncodeError&) {
    return 0;
  }
  std::string again;
  codec::encode(Codec::json, codec::decode<test::RichEvent>(Codec::json, bytes), again);
  fuzz::require(again == bytes, "an event that was decoded and encoded stays as it is");
  return 0;
}
