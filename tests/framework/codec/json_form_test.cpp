// Clean JSON as docs/payload-json.md states it: each kind of value in its one form, and back.
#include "framework/codec/payloads.hpp"

#include <stela/framework.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/types/array.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

namespace stela::test::json_form_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Price {
  std::int64_t cents = 0;
  std::string currency;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(currency));
  }
  friend bool operator==(const Price&, const Price&) = default;
};

struct Unnamed {
  int a = 1;
  Price b{2, "EUR"};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(a, b);
  }
};

struct Empty {};

struct DatedPrice : Price {
  int year = 2026;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::base_class<Price>(this), CEREAL_NVP(year));
  }
};

enum class Colour : std::uint8_t { red, green };
enum class Signed : int { minus = -3 };

enum class Size { small, large };
constexpr auto enum_names(Size) {
  return std::array{std::pair{Size::small, "small"}, std::pair{Size::large, "large"}};
}

struct Basket {
  static constexpr std::string_view category = "basket";
};

/// Names that a parser could stumble over.
struct Odd {
  int quoted = 1;
  int grown = 2;
  int very_long = 3;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::make_nvp("a\"\\b\n", quoted), cereal::make_nvp("größe", grown),
            cereal::make_nvp(
                "a_name_that_is_longer_than_the_padding_that_the_parser_keeps_behind_a_document",
                very_long));
  }
};

/// Encodes to `form`, and `form` decodes to the same value.
template <class T>
void expect_form(const T& value, std::string_view form) {
  EXPECT_EQ(form_of(value), form);
  EXPECT_EQ(from_form<T>(form), value) << form;
}

TEST(JsonForm, IsCompactAndInTheOrderOfDeclaration) {
  EXPECT_EQ(json_of(Price{199, "EUR"}), R"({"cents":199,"currency":"EUR"})");
}

TEST(JsonForm, WritesWholeNumbersAsSuch) {
  expect_form<std::int8_t>(-128, "-128");
  expect_form<std::uint8_t>(255, "255");
  expect_form<std::int16_t>(-32768, "-32768");
  expect_form<std::uint32_t>(4294967295, "4294967295");
  expect_form(std::numeric_limits<std::int64_t>::min(), "-9223372036854775808");
  expect_form(std::numeric_limits<std::int64_t>::max(), "9223372036854775807");
  expect_form(std::numeric_limits<std::uint64_t>::max(), "18446744073709551615");
  expect_form<long long>(1, "1");
  expect_form('a', "97");
  expect_form(u'\u00e9', "233");
}

TEST(JsonForm, WritesTheShortestDigitsOfADouble) {
  expect_form(0.1, "0.1");
  expect_form(1.0, "1");
  expect_form(-0.0, "-0");
  expect_form(1e23, "1e+23");
  expect_form(5e-324, "5e-324");
  expect_form(2.2250738585072011e-308, "2.225073858507201e-308");
  expect_form(std::numeric_limits<double>::max(), "1.7976931348623157e+308");
  expect_form(0.1F, "0.1");
  expect_form(std::numeric_limits<float>::denorm_min(), "1e-45");
  EXPECT_TRUE(std::signbit(from_form<double>("-0")));
}

// The one float whose shortest digits, read as a double and then rounded, give its neighbour.
TEST(JsonForm, ReadsAFloatFromItsOwnDigits) {
  expect_form(0x1.5c87fap-84F, "7.038531e-26");
  expect_form(std::numeric_limits<float>::max(), "3.4028235e+38");
  EXPECT_EQ(from_form<float>("1e-60"), 0.0F);
}

TEST(JsonForm, ReadsDoublesHoweverTheyAreWritten) {
  EXPECT_EQ(from_form<double>("1.50"), 1.5);
  EXPECT_EQ(from_form<double>("15E-1"), 1.5);
  EXPECT_EQ(from_form<double>("9007199254740993"), 9007199254740992.0);
  EXPECT_EQ(from_form<double>("18446744073709551616"), 18446744073709551616.0);
}

TEST(JsonForm, WritesBools) {
  expect_form(true, "true");
  expect_form(false, "false");
}

TEST(JsonForm, EscapesAsLittleAsPossible) {
  expect_form<std::string>("plain /'", R"("plain /'")");
  expect_form<std::string>("\" \\ \b \f \n \r \t", R"("\" \\ \b \f \n \r \t")");
  expect_form(std::string{"\0\x1f", 2}, R"("\u0000\u001f")");
  expect_form<std::string>("\x7f grün 日本 \U0001F600 \u2028",
                           "\"\x7f grün 日本 \U0001F600 \u2028\"");
}

TEST(JsonForm, ReadsEveryEscape) {
  EXPECT_EQ(from_form<std::string>(R"("\/\u0041\u00e9\ud83d\ude00")"), "/Aé\U0001F600");
}

TEST(JsonForm, WritesAnOptionalAsItsValueOrNull) {
  expect_form(std::optional<int>{3}, "3");
  expect_form(std::optional<int>{}, "null");
  expect_form(std::optional<Price>{{1, "EUR"}}, R"({"cents":1,"currency":"EUR"})");
  expect_form(std::vector<std::optional<int>>{1, std::nullopt}, "[1,null]");
  EXPECT_EQ(codec::decode<Box<std::optional<int>>>(Codec::json, "{}").v, std::nullopt);
}

TEST(JsonForm, WritesAUniquePtrAsItsValueOrNull) {
  EXPECT_EQ(form_of(std::make_unique<int>(3)), "3");
  EXPECT_EQ(form_of(std::unique_ptr<int>{}), "null");
  EXPECT_EQ(*from_form<std::unique_ptr<Price>>(R"({"cents":1,"currency":"x"})"), (Price{1, "x"}));
  EXPECT_EQ(from_form<std::unique_ptr<Price>>("null"), nullptr);
  EXPECT_EQ(*from_form<std::unique_ptr<const int>>("3"), 3);
}

TEST(JsonForm, WritesEnumsByNumberUnlessTheyHaveNames) {
  expect_form(Colour::green, "1");
  expect_form(Signed::minus, "-3");
  expect_form(static_cast<Colour>(200), "200");
  expect_form(Size::large, R"("large")");
}

TEST(JsonForm, WritesTimesAsRfc3339) {
  const auto day = std::chrono::sys_days{2026y / 11 / 21};
  expect_form(Timestamp{day + 11h + 34min + 56s + 789us}, R"("2026-11-21T11:34:56.000789Z")");
  expect_form(std::chrono::sys_time<std::chrono::milliseconds>{day},
              R"("2026-11-21T00:00:00.000Z")");
  expect_form(std::chrono::sys_seconds{day + 1s}, R"("2026-11-21T00:00:01Z")");
  expect_form(day, R"("2026-11-21T00:00:00Z")");
  expect_form(std::chrono::system_clock::time_point{day + 1ns},
              R"("2026-11-21T00:00:00.000000001Z")");
  using Eighths = std::chrono::duration<std::int64_t, std::ratio<1, 8>>;
  expect_form(std::chrono::sys_time<Eighths>{Eighths{-1}}, R"("1969-12-31T23:59:59.875Z")");
}

TEST(JsonForm, WritesTheEndsOfATimeThatItsTypeHolds) {
  using Nanos = std::chrono::sys_time<std::chrono::nanoseconds>;
  expect_form(Nanos::min(), R"("1677-09-21T00:12:43.145224192Z")");
  expect_form(Nanos::max(), R"("2262-04-11T23:47:16.854775807Z")");
  expect_form(Timestamp{std::chrono::sys_days{0y / 1 / 1}}, R"("0000-01-01T00:00:00.000000Z")");
  expect_form(Timestamp{std::chrono::sys_days{10000y / 1 / 1}} - 1us,
              R"("9999-12-31T23:59:59.999999Z")");
}

TEST(JsonForm, WritesDurationsAndOtherClocksAsCounts) {
  expect_form(-1500ms, "-1500");
  expect_form(std::chrono::duration<double>{0.5}, "0.5");
  expect_form(std::chrono::steady_clock::time_point{7ns}, "7");
  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  expect_form(std::chrono::sys_time<Thirds>{Thirds{-1}}, "-1");
}

TEST(JsonForm, WritesSequencesAsArrays) {
  expect_form(std::vector<int>{}, "[]");
  expect_form(std::vector<int>{1, 2}, "[1,2]");
  expect_form(std::vector<bool>{true, false}, "[true,false]");
  expect_form(std::array<std::uint8_t, 3>{1, 2, 3}, "[1,2,3]");
  expect_form(std::array<int, 0>{}, "[]");
  expect_form(std::vector<std::vector<std::string>>{{"a"}, {}}, R"([["a"],[]])");
  expect_form(std::vector<Price>{{1, "x"}}, R"([{"cents":1,"currency":"x"}])");
  expect_form(std::set<std::string>{"b", "a"}, R"(["a","b"])");
}

TEST(JsonForm, WritesTuplesAsArraysAndPairsByName) {
  expect_form(std::tuple{1, std::string{"a"}, true}, R"([1,"a",true])");
  expect_form(std::tuple<>{}, "[]");
  expect_form(std::pair{1, 2}, R"({"first":1,"second":2})");
}

TEST(JsonForm, WritesMapsWithTextKeysAsObjects) {
  expect_form(std::map<std::string, int>{{"b", 2}, {"", 0}, {"a\"", 1}}, R"({"":0,"a\"":1,"b":2})");
  expect_form(std::map<std::string, std::map<std::string, int>>{{"x", {}}}, R"({"x":{}})");
  expect_form(std::map<Id<Basket>, int>{{Id<Basket>::from("7"), 1}}, R"({"7":1})");
  expect_form(std::map<Size, int>{{Size::large, 1}}, R"({"large":1})");
  expect_form(std::map<Uuid, int>{{Uuid{}, 1}}, R"({"00000000-0000-0000-0000-000000000000":1})");
}

TEST(JsonForm, WritesOtherMapsAsArraysOfEntries) {
  expect_form(std::map<int, bool>{{2, true}, {10, false}},
              R"([{"key":2,"value":true},{"key":10,"value":false}])");
  expect_form(std::multimap<std::string, int>{{"a", 1}, {"a", 2}},
              R"([{"key":"a","value":1},{"key":"a","value":2}])");
}

TEST(JsonForm, SortsUnorderedContainers) {
  expect_form(std::unordered_map<std::string, int>{{"b", 2}, {"a", 1}, {"c", 3}},
              R"({"a":1,"b":2,"c":3})");
  expect_form(std::unordered_map<int, int>{{3, 0}, {1, 0}, {2, 0}},
              R"([{"key":1,"value":0},{"key":2,"value":0},{"key":3,"value":0}])");
  expect_form(std::unordered_set<std::string>{"b", "c", "a"}, R"(["a","b","c"])");
  expect_form(std::unordered_multiset<int>{2, 1, 2}, "[1,2,2]");
  expect_form(std::unordered_multimap<std::string, int>{{"a", 2}, {"a", 1}},
              R"([{"key":"a","value":1},{"key":"a","value":2}])");
}

TEST(JsonForm, WritesAVariantAsIndexAndData) {
  using Either = std::variant<std::monostate, int, std::string>;
  expect_form(Either{}, R"({"index":0,"data":{}})");
  expect_form(Either{5}, R"({"index":1,"data":5})");
  expect_form(Either{"x"}, R"({"index":2,"data":"x"})");
}

TEST(JsonForm, WritesABitsetAsText) {
  expect_form(std::bitset<5>{0b00110}, R"("00110")");
  expect_form(std::bitset<0>{}, R"("")");
}

TEST(JsonForm, WritesAComplexNumberByName) {
  expect_form(std::complex<double>{1, -2}, R"({"real":1,"imag":-2})");
}

TEST(JsonForm, WritesIdsAsText) {
  expect_form(Id<Basket>::from("jane@example.org"), R"("jane@example.org")");
  expect_form(Id<Basket>{}, R"("")");
  expect_form(*Uuid::parse("0190d3c0-0000-7000-8000-00000000abcd"),
              R"("0190d3c0-0000-7000-8000-00000000abcd")");
}

TEST(JsonForm, NumbersFieldsWithoutAName) {
  EXPECT_EQ(json_of(Unnamed{}), R"({"value0":1,"value1":{"cents":2,"currency":"EUR"}})");
  EXPECT_EQ(codec::decode<Unnamed>(Codec::json, json_of(Unnamed{7, {8, "x"}})).b, (Price{8, "x"}));
}

TEST(JsonForm, WritesAnEmptyClassAsAnEmptyObject) {
  EXPECT_EQ(json_of(Empty{}), "{}");
  EXPECT_EQ(form_of(std::vector<Empty>(2)), "[{},{}]");
  EXPECT_EQ(from_form<std::vector<Empty>>("[{},{}]").size(), 2u);
}

TEST(JsonForm, PutsTheFieldsOfABaseAmongThoseOfTheClass) {
  DatedPrice price;
  price.cents = 5;

  EXPECT_EQ(json_of(price), R"({"cents":5,"currency":"","year":2026})");
  EXPECT_EQ(codec::decode<DatedPrice>(Codec::json, R"({"cents":6,"currency":"x","year":1})").cents,
            6);
}

TEST(JsonForm, KnowsValuesThatAreNotObjects) {
  EXPECT_EQ(json_of(std::vector<int>{1}), "[1]");
  EXPECT_EQ(json_of(std::string{"a"}), R"("a")");
  EXPECT_EQ(codec::decode<std::vector<int>>(Codec::json, " [1] "), std::vector<int>{1});
  EXPECT_EQ(codec::decode<std::string>(Codec::json, R"("a")"), "a");
  EXPECT_EQ(codec::decode<std::int64_t>(Codec::json, "-7"), -7);
  EXPECT_EQ(codec::decode<std::uint64_t>(Codec::json, "7"), 7u);
  EXPECT_EQ(codec::decode<double>(Codec::json, "0.5"), 0.5);
  EXPECT_EQ(codec::decode<bool>(Codec::json, "true"), true);
  EXPECT_EQ(codec::decode<std::optional<int>>(Codec::json, "null"), std::nullopt);
  EXPECT_EQ(codec::decode<std::optional<int>>(Codec::json, "3"), 3);
}

TEST(JsonForm, KeepsFieldNamesOfEveryKind) {
  const std::string text = json_of(Odd{4, 5, 6});

  EXPECT_THAT(text, HasSubstr(R"("a\"\\b\n":4,"größe":5)"));
  const auto odd = codec::decode<Odd>(Codec::json, text);
  EXPECT_EQ(odd.quoted, 4);
  EXPECT_EQ(odd.grown, 5);
  EXPECT_EQ(odd.very_long, 6);
  EXPECT_EQ(json_refusal<Odd>("{}"), "a\"\\b\n is missing");
}

}  // namespace
}  // namespace stela::test::json_form_test
