// Any bytes as a line of an export, the header or an event's. What is accepted is written as a line
// that means the same.
#include "fuzz/fuzzer.hpp"

#include "event_lines.hpp"

namespace stela::fuzz {
namespace {

void check_line(std::string_view line, Codec codec) {
  Embedding embedding;
  const ExportHeader header{.codec = codec, .has_tags = true};
  const ParsedEvent event = parse_line(line, header, embedding);
  std::string written;
  try {
    append_line(written, event.view(event.kind, StreamVersion{0}), codec, embedding);
  } catch (const CorruptEvent&) {
    return;
  }
  require(!written.empty() && written.back() == '\n', "a line ends");
  written.pop_back();
  std::string again;
  const ParsedEvent second = parse_line(written, header, embedding);
  append_line(again, second.view(second.kind, StreamVersion{0}), codec, embedding);
  again.pop_back();
  require(again == written, "a line that was read and written stays as it is");
  require(second.payload == event.payload, "a payload stays as it is");
}

}  // namespace
}  // namespace stela::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stela;
  const std::string_view line = fuzz::text_of(data, size);
  try {
    (void)parse_header(line);
  } catch (const BadLine&) {
    // As most lines are.
  }
  try {
    Embedding embedding;
    (void)parse_state(line, embedding);
  } catch (const BadLine&) {
  }
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    try {
      fuzz::check_line(line, codec);
    } catch (const BadLine&) {
      continue;
    }
  }
  return 0;
}
