// Any bytes as a stream's name, a UUID, a time, an event's name: what is accepted can be written
// and read again.
#include "fuzz/fuzzer.hpp"

#include <stela/framework/clock.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/uuid.hpp>

namespace stela::fuzz {
namespace {

void check_stream(std::string_view text) {
  try {
    const StreamId id = StreamId::parse(text);
    require(id.name() == text, "a stream's name is what it was parsed from");
    require(StreamId::of(id.category(), id.key()) == id, "a stream's name can be put together");
  } catch (const UsageError& e) {
    require(std::string_view{e.what()}.size() < 400, "a refusal is short, whatever it refuses");
  }
}

void check_uuid(std::string_view text) {
  const auto uuid = Uuid::parse(text);
  if (uuid) require(Uuid::parse(uuid->to_string()) == uuid, "a UUID is read as it is written");
}

void check_time(std::string_view text) {
  const auto time = parse_timestamp(text);
  if (time) require(parse_timestamp(to_string(*time)) == time, "a time is read as it is written");
}

}  // namespace
}  // namespace stela::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = stela::fuzz::text_of(data, size);
  stela::fuzz::check_stream(text);
  stela::fuzz::check_uuid(text);
  stela::fuzz::check_time(text);
  if (stela::is_valid_event_name(text)) {
    stela::fuzz::require(text.size() <= 128, "an event's name has at most 128 characters");
  }
  return 0;
}
