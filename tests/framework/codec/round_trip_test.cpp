// Whatever is written comes back, for generated values of every kind.
#include "framework/codec/generators.hpp"
#include "framework/codec/payloads.hpp"

#include <cereal/archives/portable_binary.hpp>

#include <sstream>

namespace stela::test::round_trip_test {
namespace {

/// Comes back equal, and is written the same again.
template <class T>
void check_round_trip(Codec codec, const T& value) {
  const std::string bytes = bytes_of(codec, value);
  const T decoded = codec::decode<T>(codec, bytes);
  RC_ASSERT(decoded == value);
  RC_ASSERT(bytes_of(codec, decoded) == bytes);
}

RC_GTEST_PROP(RoundTrip, RichEventsAsJson, ()) {
  check_round_trip(Codec::json, *any_rich_event());
}

RC_GTEST_PROP(RoundTrip, RichEventsAsPortableBinary, ()) {
  check_round_trip(Codec::portable_binary, *any_rich_event());
}

RC_GTEST_PROP(RoundTrip, RichEventsThroughCereal, ()) {
  const RichEvent event = *any_rich_event();
  std::stringstream stream;
  cereal::PortableBinaryOutputArchive{
      stream, cereal::PortableBinaryOutputArchive::Options::LittleEndian()}(event);
  RC_ASSERT(codec::decode<RichEvent>(Codec::portable_binary, stream.str()) == event);

  stream.str(bytes_of(Codec::portable_binary, event));
  RichEvent read;
  cereal::PortableBinaryInputArchive{stream}(read);
  RC_ASSERT(codec::decode<RichEvent>(Codec::portable_binary, stream.str()) == event);
  RC_ASSERT(read.numbers == event.numbers);
  RC_ASSERT(read.tree == event.tree);
}

RC_GTEST_PROP(RoundTrip, PortableBinaryIsCerealsOwn, ()) {
  RichEvent event = *any_rich_event();
  event.containers.blobs.clear();
  event.containers.readings.clear();
  event.containers.tags.clear();
  std::ostringstream stream;
  cereal::PortableBinaryOutputArchive{
      stream, cereal::PortableBinaryOutputArchive::Options::LittleEndian()}(event);
  RC_ASSERT(bytes_of(Codec::portable_binary, event) == stream.str());
}

RC_GTEST_PROP(RoundTrip, TextOfAnyKind, ()) {
  check_round_trip(Codec::json, Box<std::string>{*any_text()});
}

RC_GTEST_PROP(RoundTrip, AnyBytesInPortableBinary, (const std::string& bytes)) {
  check_round_trip(Codec::portable_binary, Box<std::string>{bytes});
}

RC_GTEST_PROP(RoundTrip, JsonTakesExactlyWhatIsUtf8, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text{bytes.begin(), bytes.end()};
  if (json::is_utf8(text)) {
    check_round_trip(Codec::json, Box<std::string>{text});
  } else {
    RC_ASSERT_THROWS_AS(json_of(Box<std::string>{text}), codec::EncodeError);
  }
}

RC_GTEST_PROP(RoundTrip, DoublesBitForBit, ()) {
  const double value = *any_double();
  const double read = from_form<double>(form_of(value));
  RC_ASSERT(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(value));
}

RC_GTEST_PROP(RoundTrip, FloatsBitForBit, ()) {
  const float value = *any_float();
  const float read = from_form<float>(form_of(value));
  RC_ASSERT(std::bit_cast<std::uint32_t>(read) == std::bit_cast<std::uint32_t>(value));
}

RC_GTEST_PROP(RoundTrip, TimesAndTheirOrder, ()) {
  const Timestamp a = *any_time();
  const Timestamp b = *any_time();
  RC_ASSERT(parse_timestamp(to_string(a)) == a);
  RC_ASSERT((to_string(a) < to_string(b)) == (a < b));
}

RC_GTEST_PROP(RoundTrip, NestedContainers, ()) {
  using Nested = std::map<std::string, std::vector<std::map<std::int32_t, std::set<std::string>>>>;
  const auto texts = rc::gen::container<std::set<std::string>>(any_text());
  const auto inner = rc::gen::container<std::map<std::int32_t, std::set<std::string>>>(
      any_integer<std::int32_t>(), texts);
  const auto list = rc::gen::resize(
      5, rc::gen::container<std::vector<std::map<std::int32_t, std::set<std::string>>>>(inner));
  const Nested nested = *rc::gen::resize(5, rc::gen::container<Nested>(any_text(), list));
  check_round_trip(Codec::json, Box<Nested>{nested});
  check_round_trip(Codec::portable_binary, Box<Nested>{nested});
}

/// Damaged bytes either decode or are refused; nothing else happens.
void check_damage(Codec codec, std::string bytes) {
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  const int kind = *rc::gen::inRange(0, 4);
  if (kind == 0) bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  if (kind == 1) bytes.resize(at);
  if (kind == 2) bytes.erase(at, 1);
  if (kind == 3) bytes.insert(at, 1, static_cast<char>(*rc::gen::arbitrary<std::uint8_t>()));
  RichEvent event;
  try {
    codec::decode(codec, bytes, event);
  } catch (const codec::DecodeError&) {
    return;
  }
  const std::string again = bytes_of(codec, event);
  RC_ASSERT(bytes_of(codec, codec::decode<RichEvent>(codec, again)) == again);
}

RC_GTEST_PROP(RoundTrip, DamagedJsonIsRefusedOrRead, ()) {
  check_damage(Codec::json, json_of(sample_rich_event()));
}

RC_GTEST_PROP(RoundTrip, DamagedBinaryIsRefusedOrRead, ()) {
  check_damage(Codec::portable_binary, bytes_of(Codec::portable_binary, sample_rich_event()));
}

}  // namespace
}  // namespace stela::test::round_trip_test
