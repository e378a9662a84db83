// What portable binary refuses.
#include "framework/codec/payloads.hpp"
#include "support/rich_event.hpp"

#include <stela/framework.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/types/array.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/forward_list.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

namespace stela::test::binary_refusal_test {
namespace {

using ::testing::HasSubstr;

template <class T>
std::string binary_of(const T& value) {
  return bytes_of(Codec::portable_binary, value);
}

/// The first bytes of a container that says it has `count` elements.
std::string announcing(std::uint64_t count) {
  return binary_of(Box<std::uint64_t>{count});
}

struct Empty {};

TEST(BinaryDecoding, RefusesAnotherHeader) {
  EXPECT_THAT(binary_refusal<Box<int>>(""), HasSubstr("doesn't begin"));
  EXPECT_THAT(binary_refusal<Box<int>>(std::string_view{"\0\0\0\0\1", 5}),
              HasSubstr("doesn't begin"));
  EXPECT_THAT(binary_refusal<Box<int>>(R"({"v":1})"), HasSubstr("doesn't begin"));
}

TEST(BinaryDecoding, RefusesTruncatedBytes) {
  const std::string whole = binary_of(sample_rich_event());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(binary_refusal<RichEvent>(whole.substr(0, size)), "nothing was thrown") << size;
  }
}

TEST(BinaryDecoding, RefusesBytesAfterTheEnd) {
  EXPECT_EQ(binary_refusal<Box<int>>(binary_of(Box<int>{1}).append("xy")),
            "the payload has 2 bytes too many");
}

TEST(BinaryDecoding, RefusesABoolThatIsNeitherTrueNorFalse) {
  EXPECT_THAT(binary_refusal<Box<bool>>("\1\2"), HasSubstr("neither true nor false"));
  EXPECT_THAT((binary_refusal<std::array<bool, 2>>("\1\1\2")), HasSubstr("neither true nor false"));
  EXPECT_THAT((binary_refusal<std::array<bool, 2>>("\1\1")), HasSubstr("ends too early"));
}

TEST(BinaryDecoding, RefusesASizeLargerThanItsBytes) {
  const std::string huge = announcing(0xffff'ffff'ffff'ffff);
  EXPECT_THAT(binary_refusal<std::string>(huge), HasSubstr("announces 18446744073709551615"));
  EXPECT_THAT(binary_refusal<std::vector<int>>(huge), HasSubstr("announces"));
  EXPECT_THAT(binary_refusal<std::vector<std::string>>(huge), HasSubstr("announces"));
  EXPECT_THAT((binary_refusal<std::unordered_map<int, int>>(huge)), HasSubstr("announces"));
  EXPECT_THAT(binary_refusal<std::vector<int>>(announcing(4097)), HasSubstr("announces 4097"));
  EXPECT_THAT(binary_refusal<std::vector<int>>(announcing(4096)), HasSubstr("ends too early"));
}

TEST(BinaryDecoding, MakesNoMoreElementsThanItReads) {
  std::string twos = announcing(1'000'000).append(1'000'000, '\2');
  const std::string problem = "neither true nor false";

  EXPECT_THAT(binary_refusal<std::vector<Witness>>(twos), HasSubstr(problem));
  EXPECT_THAT(binary_refusal<std::list<Witness>>(twos), HasSubstr(problem));
  EXPECT_THAT(binary_refusal<std::deque<Witness>>(twos), HasSubstr(problem));
  EXPECT_THAT(binary_refusal<std::forward_list<Witness>>(twos), HasSubstr(problem));
  EXPECT_LE(std::exchange(Witness::made, 0), 8);

  CountingBytes<Witness>::most = 0;
  EXPECT_THAT((binary_refusal<std::vector<Witness, CountingBytes<Witness>>>(twos)),
              HasSubstr(problem));
  EXPECT_LE(CountingBytes<Witness>::most, std::size_t{64} * 1024);

  EXPECT_THAT((binary_refusal<std::vector<double, CountingBytes<double>>>(twos)),
              HasSubstr("ends too early"));
  EXPECT_EQ(CountingBytes<double>::most, 0u);
}

TEST(BinaryDecoding, MakesFewElementsThatTakeNoBytes) {
  std::string many = announcing(1000);
  for (int i = 0; i < 1000; ++i) many += announcing(4096).substr(1);

  EXPECT_THAT(binary_refusal<std::vector<std::vector<Empty>>>(many),
              HasSubstr("more than 8009 elements that take no bytes"));
  EXPECT_THAT(encode_refusal(Codec::portable_binary,
                             std::vector<std::vector<Empty>>(3, std::vector<Empty>(4096))),
              HasSubstr("elements that take no bytes"));
}

enum class Size : std::uint8_t { small = 1, large = 200 };
constexpr auto enum_names(Size) {
  return std::array{std::pair{Size::small, "small"}, std::pair{Size::large, "large"}};
}
enum Plain { first, second };
constexpr auto enum_names(Plain) {
  return std::array{std::pair{first, "first"}, std::pair{second, "second"}};
}
enum class Unnamed : std::uint8_t { one = 1 };

TEST(BinaryDecoding, RefusesAnEnumeratorWithoutAName) {
  EXPECT_EQ(codec::decode<Size>(Codec::portable_binary, "\1\xc8"), Size::large);
  EXPECT_EQ(binary_refusal<Size>("\1\7"),
            "the payload has the enumerator 7, for which enum_names has no name");
  EXPECT_EQ(binary_refusal<Plain>(binary_of(Box<std::uint32_t>{7})),
            "the payload has the enumerator 7, for which enum_names has no name");
  // Without names, each number of its type is one of its values.
  EXPECT_EQ(codec::decode<Unnamed>(Codec::portable_binary, "\1\7"), Unnamed{7});
}

TEST(BinaryEncoding, RefusesAnEnumeratorWithoutAName) {
  EXPECT_EQ(encode_refusal(Codec::portable_binary, Box<Size>{static_cast<Size>(7)}),
            "the payload has the enumerator 7, for which enum_names has no name");
}

TEST(BinaryDecoding, RefusesMoreThan512Levels) {
  const std::string deepest = binary_of(nested(170));
  EXPECT_EQ(binary_refusal<Nested>(deepest), "nothing was thrown");
  EXPECT_THAT(encode_refusal(Codec::portable_binary, nested(171)),
              HasSubstr("more than 512 levels"));
  EXPECT_THAT(binary_refusal<Nested>(std::string(1'000'000, '\1')),
              HasSubstr("more than 512 levels"));
}

TEST(BinaryDecoding, RefusesAnUnknownAlternative) {
  using Either = std::variant<int, std::string>;
  EXPECT_THAT(binary_refusal<Either>(binary_of(Box<std::int32_t>{2})), HasSubstr("index"));
  EXPECT_NE(binary_refusal<Either>(binary_of(Box<std::int32_t>{-1})), "nothing was thrown");
}

TEST(BinaryDecoding, RefusesKeysThatAreNone) {
  EXPECT_THAT(binary_refusal<Id<RichBasket>>(binary_of(std::string{"a b"})),
              HasSubstr("the key has a space"));
}

TEST(BinaryDecoding, RefusesMoreThan64MiB) {
  EXPECT_EQ(binary_refusal<Box<int>>(std::string(codec::max_payload_size + 1, '\1')),
            "the payload is larger than 64 MiB");
}

TEST(BinaryEncoding, WritesNoMoreElementsWithoutBytesThanItReads) {
  const std::vector<Empty> few(4096);
  EXPECT_EQ(codec::decode<std::vector<Empty>>(Codec::portable_binary, binary_of(few)).size(),
            4096u);
  EXPECT_THAT(encode_refusal(Codec::portable_binary, std::vector<Empty>(4097)),
              HasSubstr("more than 4096 elements that take no bytes"));
  // What follows them counts for the reader, and so it does for the writer.
  const std::pair<std::vector<Empty>, std::string> padded{std::vector<Empty>(5000),
                                                          std::string(5000, 'x')};
  EXPECT_EQ((codec::decode<std::pair<std::vector<Empty>, std::string>>(Codec::portable_binary,
                                                                       binary_of(padded))
                 .first.size()),
            5000u);
}

TEST(BinaryEncoding, CountsValuesWithoutBytesInsideOfOthers) {
  using Empties = std::pair<Empty, Empty>;
  const auto before = [](std::size_t size) { return std::vector<std::pair<Empties, bool>>(size); };
  const auto behind = [](std::size_t size) { return std::vector<std::pair<bool, Empties>>(size); };
  const std::string problem = "more than 4096 elements that take no bytes";

  // Three in each element.
  EXPECT_THAT(encode_refusal(Codec::portable_binary, before(1366)), HasSubstr(problem));
  EXPECT_THAT(encode_refusal(Codec::portable_binary, behind(1366)), HasSubstr(problem));
  const std::string most = binary_of(before(1365));
  EXPECT_EQ(binary_of(behind(1365)), most);
  EXPECT_EQ((codec::decode<decltype(before(0))>(Codec::portable_binary, most).size()), 1365u);
  const std::string too_many = announcing(1366).append(1366, '\1');
  EXPECT_THAT(binary_refusal<decltype(before(0))>(too_many), HasSubstr(problem));
  EXPECT_THAT(binary_refusal<decltype(behind(0))>(too_many), HasSubstr(problem));
}

TEST(BinaryEncoding, LeavesTheBytesBeforeItAsTheyWere) {
  std::string bytes = "before";

  EXPECT_THROW(codec::encode(Codec::portable_binary, std::vector<Empty>(4097), bytes),
               codec::EncodeError);

  EXPECT_EQ(bytes, "before");
}

}  // namespace
}  // namespace stela::test::binary_refusal_test
