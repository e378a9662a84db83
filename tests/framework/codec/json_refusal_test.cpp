// What clean JSON refuses, on the way in and on the way out, and in which words.
#include "framework/codec/payloads.hpp"

#include <stela/framework.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/types/array.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/forward_list.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>

namespace stela::test::json_refusal_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Line {
  std::string sku;
  std::int32_t quantity = 0;
  double price = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(sku), CEREAL_NVP(quantity), CEREAL_NVP(price));
  }
};

struct Order {
  std::string customer;
  std::optional<std::string> note;
  std::vector<Line> lines;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(note), CEREAL_NVP(lines));
  }
};

enum class Size { small, large };
constexpr auto enum_names(Size) {
  return std::array{std::pair{Size::small, "small"}, std::pair{Size::large, "large"}};
}

struct Basket {
  static constexpr std::string_view category = "basket";
};

struct Unnamed {
  Line first;
  Line second;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(first, second);
  }
};

/// Throws from its own serialisation.
struct Moody {
  template <class Archive>
  void save(Archive&) const {
    throw std::domain_error{"not today"};
  }
  template <class Archive>
  void load(Archive&) {
    throw std::domain_error{"not today"};
  }
};

struct Rude {
  template <class Archive>
  void serialize(Archive&) {
    throw 42;
  }
};

TEST(JsonDecoding, NamesTheFieldThatIsMissing) {
  EXPECT_EQ(json_refusal<Order>("{}"), "customer is missing");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"a"})"), "lines is missing");
  EXPECT_EQ(json_refusal<Order>(
                R"({"customer":"a","lines":[{"sku":"","quantity":1,"price":0},{"sku":"x"}]})"),
            "lines[1].quantity is missing");
}

TEST(JsonDecoding, TakesFieldsInAnyOrder) {
  const auto order = codec::decode<Order>(
      Codec::json, R"({"lines":[{"price":1,"quantity":2,"sku":"s"}],"note":"n","customer":"c"})");

  EXPECT_EQ(order.customer, "c");
  EXPECT_EQ(order.note, "n");
  EXPECT_EQ(order.lines.at(0).quantity, 2);
}

TEST(JsonDecoding, IgnoresFieldsThatItDoesNotKnow) {
  const auto order = codec::decode<Order>(
      Codec::json,
      R"({"a":{"b":[1,{"customer":"no"}]},"customer":"c","x":null,"lines":[],"z":[[]]})");

  EXPECT_EQ(order.customer, "c");
}

TEST(JsonDecoding, RefusesAnIgnoredFieldThatIsNoJson) {
  // Skimmed, the string before the colon is a name, and the field swallows the end of its object.
  EXPECT_THAT(json_refusal<Order>(R"({"lines":[{"sku":"s","quantity":1,"price":2,"x":"a":[1]}],)"
                                  R"("z":{},"customer":"c"})"),
              StartsWith("the payload isn't valid JSON"));
  EXPECT_THAT(json_refusal<Order>(R"({"x":{"y":"a":[1]},"lines":[],"customer":"c"})"),
              StartsWith("the payload isn't valid JSON"));
}

TEST(JsonDecoding, TakesWhitespaceWhereverJsonAllowsIt) {
  const auto order =
      codec::decode<Order>(Codec::json, " \n{ \"customer\" :\t\"c\" , \"lines\" : [ ] } \r\n");

  EXPECT_EQ(order.customer, "c");
}

TEST(JsonDecoding, NamesThePathOfAWrongType) {
  EXPECT_EQ(json_refusal<Order>(R"({"customer":5,"lines":[]})"), "customer isn't a text");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":null,"lines":[]})"), "customer isn't a text");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"","note":5,"lines":[]})"), "note isn't a text");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"","lines":{}})"), "lines isn't an array");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"","lines":[7]})"), "lines[0] isn't an object");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"","lines":[{"sku":"","quantity":"1","price":0}]})"),
            "lines[0].quantity isn't a whole number of 64 bits");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"","lines":[{"sku":"","quantity":1,"price":"0"}]})"),
            "lines[0].price isn't a number that a double can hold");
  EXPECT_EQ(form_refusal<bool>("1"), "v isn't true or false");
  EXPECT_EQ(form_refusal<bool>(R"("true")"), "v isn't true or false");
  EXPECT_EQ(json_refusal<Order>("[]"), "the payload isn't an object");
  EXPECT_EQ(json_refusal<Order>("null"), "the payload isn't an object");
  EXPECT_EQ((form_refusal<std::map<std::string, int>>("[]")), "v isn't an object");
}

TEST(JsonDecoding, NamesFieldsWithoutANameAsTheyAreWritten) {
  EXPECT_EQ(json_refusal<Unnamed>(R"({"value0":{"sku":"","quantity":1,"price":0},"value1":{}})"),
            "value1.sku is missing");
  EXPECT_EQ(json_refusal<Unnamed>(R"({"value0":{"sku":"","quantity":1,"price":0}})"),
            "value1 is missing");
}

TEST(JsonDecoding, RefusesNumbersOutOfRange) {
  EXPECT_EQ(form_refusal<std::int8_t>("128"), "v is out of range for its type");
  EXPECT_EQ(form_refusal<std::int8_t>("-129"), "v is out of range for its type");
  EXPECT_EQ(form_refusal<std::uint8_t>("256"), "v is out of range for its type");
  EXPECT_EQ(form_refusal<std::uint32_t>("4294967296"), "v is out of range for its type");
  EXPECT_EQ(form_refusal<std::uint32_t>("-1"), "v isn't a whole number of 64 bits, not negative");
  EXPECT_EQ(form_refusal<std::int64_t>("9223372036854775808"), "v isn't a whole number of 64 bits");
  EXPECT_EQ(form_refusal<std::int64_t>("-9223372036854775809"),
            "v isn't a whole number of 64 bits");
  EXPECT_EQ(form_refusal<std::uint64_t>("18446744073709551616"),
            "v isn't a whole number of 64 bits, not negative");
  EXPECT_EQ(form_refusal<int>("1.0"), "v isn't a whole number of 64 bits");
  EXPECT_EQ(form_refusal<int>("1e3"), "v isn't a whole number of 64 bits");
  EXPECT_EQ(form_refusal<float>("1e39"), "v is too large for a float");
  EXPECT_EQ(form_refusal<float>("-3.4028236e+38"), "v is too large for a float");
  EXPECT_EQ(form_refusal<double>("1e400"), "v isn't a number that a double can hold");
}

TEST(JsonDecoding, RefusesTextThatIsNotJson) {
  for (const std::string_view number : {"01", "+1", ".5", "1.", "0x10", "NaN", "Infinity",
                                        "-Infinity", "nan", "1_000", "1e", "--1", "1a"}) {
    EXPECT_THAT(form_refusal<double>(number), StartsWith("v isn't a number")) << number;
  }
  for (const std::string_view text :
       {R"("\x41")", R"("\u12")", R"("\ud800")", R"("\ud800\u0041")", R"("\udc00")"}) {
    EXPECT_EQ(form_refusal<std::string>(text), "v has an escape that JSON doesn't have") << text;
  }
  EXPECT_NE(form_refusal<std::string>("\"a\nb\""), "nothing was thrown");
  EXPECT_NE(form_refusal<std::string>("'a'"), "nothing was thrown");
  EXPECT_EQ(form_refusal<bool>("True"), "v isn't true or false");
}

TEST(JsonDecoding, RefusesTextThatIsNotUtf8) {
  for (const std::string_view text :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_THAT(form_refusal<std::string>(std::string{"\""}.append(text).append("\"")),
                HasSubstr("UTF-8"));
  }
  // In a member that nobody asks for, too.
  EXPECT_THAT(json_refusal<Box<int>>("{\"v\":1,\"x\":\"\xff\"}"), HasSubstr("UTF-8"));
}

TEST(JsonDecoding, RefusesTruncatedText) {
  const std::string whole = R"({"customer":"c","lines":[{"sku":"s","quantity":1,"price":0.5}]})";
  ASSERT_EQ(json_refusal<Order>(whole), "nothing was thrown");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(json_refusal<Order>(whole.substr(0, size)), "nothing was thrown") << size;
  }
}

TEST(JsonDecoding, RefusesTextAfterTheEnd) {
  EXPECT_THAT(json_refusal<Box<int>>(R"({"v":1} x)"), StartsWith("the payload isn't valid JSON"));
  EXPECT_EQ(json_refusal<Box<int>>(R"({"v":1}{"v":2})"), "the payload has more text after its end");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1}})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1}])"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(std::string_view{"{\"v\":1}\0", 8}), "nothing was thrown");
  EXPECT_NE(json_refusal<std::string>(R"("a" "b")"), "nothing was thrown");
  EXPECT_NE(json_refusal<std::vector<int>>("[1],"), "nothing was thrown");
  EXPECT_NE(json_refusal<std::optional<int>>("nullx"), "nothing was thrown");
  EXPECT_NE(json_refusal<std::optional<int>>("nulla "), "nothing was thrown");
}

TEST(JsonDecoding, RefusesTwoMembersOfOneName) {
  EXPECT_EQ(json_refusal<Box<int>>(R"({"v":1,"v":1})"), "v appears twice");
  EXPECT_EQ(json_refusal<Box<int>>(R"({"x":1,"v":1,"x":1})"), "x appears twice");
  EXPECT_EQ(json_refusal<Order>(R"({"customer":"a","lines":[{"sku":"","quantity":1,"price":0,)"
                                R"("sku":""}]})"),
            "lines[0].sku appears twice");
  EXPECT_EQ(json_refusal<Order>(R"({"lines":[],"customer":"a","customer":"b"})"),
            "customer appears twice");
  EXPECT_EQ((form_refusal<std::map<std::string, int>>(R"({"a":1,"b":2,"a":1})")),
            "v.a appears twice");
  EXPECT_EQ((form_refusal<std::unordered_map<std::string, int>>(R"({"a":1,"\u0061":1})")),
            "v.a appears twice");
}

TEST(JsonDecoding, RefusesTwoMembersOfOneNameHoweverTheyAreEscaped) {
  EXPECT_EQ(json_refusal<Box<int>>(R"({"v":1,"\u0076":2})"), "v appears twice");
  EXPECT_EQ(json_refusal<Box<int>>(R"({"\u0076":2,"v":1})"), "v appears twice");
  EXPECT_EQ(json_refusal<Box<int>>(R"({"a\/b":1,"v":1,"a\u002fb":1})"), "a/b appears twice");
  EXPECT_EQ(json_refusal<Box<int>>(R"({"v":1,"a\n":1,"a\t":1})"), "nothing was thrown");
}

TEST(JsonDecoding, FindsAMemberHoweverItsNameIsEscaped) {
  const std::string text =
      R"({"l\u0069nes":[{"price":1,"\u0073ku":"s","quantity":2}],"not\u0065":"n","customer":"c"})";
  const auto order = codec::decode<Order>(Codec::json, text);

  EXPECT_EQ(order.customer, "c");
  EXPECT_EQ(order.note, "n");
  EXPECT_EQ(order.lines.at(0).sku, "s");
}

TEST(JsonDecoding, MakesNoMoreElementsThanItReads) {
  std::string ones = "[1";
  for (int i = 1; i < 500'000; ++i) ones += ",1";
  ones += ']';

  EXPECT_THAT(json_refusal<std::vector<Witness>>(ones), HasSubstr("[0] isn't an object"));
  EXPECT_THAT(json_refusal<std::list<Witness>>(ones), HasSubstr("[0] isn't an object"));
  EXPECT_THAT(json_refusal<std::deque<Witness>>(ones), HasSubstr("[0] isn't an object"));
  EXPECT_THAT(json_refusal<std::forward_list<Witness>>(ones), HasSubstr("[0] isn't an object"));
  EXPECT_LE(std::exchange(Witness::made, 0), 8);

  CountingBytes<Witness>::most = 0;
  EXPECT_THAT((json_refusal<std::vector<Witness, CountingBytes<Witness>>>(ones)),
              HasSubstr("[0] isn't an object"));
  EXPECT_LE(CountingBytes<Witness>::most, std::size_t{64} * 1024);
}

TEST(JsonDecoding, RefusesAMemberThatTheStructAsksForTwice) {
  struct Twice {
    std::string a;
    std::string b;
    void serialize(json::InputArchive& archive) {
      archive(cereal::make_nvp("x", a), cereal::make_nvp("y", b), cereal::make_nvp("x", b));
    }
    void serialize(json::OutputArchive&) {}
    void serialize(binary::InputArchive&) {}
    void serialize(binary::OutputArchive&) {}
  };
  std::string text = R"({"y":"","x":")";
  text.append(10'000, 'x').append("\"}");

  // Nothing to refuse, but nothing to overrun either.
  EXPECT_EQ(codec::decode<Twice>(Codec::json, text).b.size(), 10'000u);
}

TEST(JsonDecoding, ChecksSkippedFields) {
  EXPECT_NE(json_refusal<Box<int>>(R"({"x":tru,"v":1})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,"x":01})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,"x":[1,2}})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,"x":{"a" 1}})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,"x":"\q"})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1 "x":1})"), "nothing was thrown");
  EXPECT_NE(json_refusal<Box<int>>(R"({"v":1,5:1})"), "nothing was thrown");
  EXPECT_NE(form_refusal<std::vector<int>>("[1 2]"), "nothing was thrown");
  EXPECT_NE(form_refusal<std::vector<int>>("[1,]"), "nothing was thrown");
  EXPECT_NE(form_refusal<std::vector<int>>("[1}"), "nothing was thrown");
}

TEST(JsonDecoding, RefusesAnotherNumberOfElements) {
  const std::string problem = "v has another number of elements than expected";
  EXPECT_EQ((form_refusal<std::array<int, 2>>("[1]")), problem);
  EXPECT_EQ((form_refusal<std::array<int, 2>>("[1,2,3]")), problem);
  EXPECT_EQ((form_refusal<std::tuple<int, int>>("[]")), problem);
}

TEST(JsonDecoding, RefusesTextsThatMeanNothing) {
  EXPECT_EQ(form_refusal<Size>(R"("medium")"), "v isn't one of the enum's names");
  EXPECT_EQ(form_refusal<Size>("1"), "v isn't a text");
  EXPECT_THAT(form_refusal<Timestamp>(R"("2026-02-30T00:00:00Z")"), StartsWith("v isn't a time"));
  EXPECT_THAT(form_refusal<Timestamp>("1790000000"), StartsWith("v isn't a text"));
  EXPECT_THAT(form_refusal<std::chrono::sys_days>(R"("2026-01-01T00:00:01Z")"),
              StartsWith("v isn't a time"));
  EXPECT_THAT(form_refusal<std::chrono::sys_time<std::chrono::nanoseconds>>(
                  R"("2262-04-11T23:47:16.854775808Z")"),
              StartsWith("v isn't a time"));
  EXPECT_EQ(form_refusal<Uuid>(R"("0190d3c0")"), "v: it isn't a UUID");
  EXPECT_EQ(form_refusal<Id<Basket>>(R"("a b")"),
            "v: 'a b' can't be the key of a stream: the key has a space");
  EXPECT_THAT(form_refusal<std::bitset<3>>(R"("0120")"), HasSubstr("as many 0 and 1"));
  EXPECT_THAT(form_refusal<std::bitset<3>>(R"("012")"), HasSubstr("as many 0 and 1"));
  EXPECT_THAT((form_refusal<std::map<Uuid, int>>(R"({"x":1})")), StartsWith("v.x: it isn't"));
}

TEST(JsonDecoding, RefusesAnUnknownAlternative) {
  using Either = std::variant<int, std::string>;
  EXPECT_THAT(form_refusal<Either>(R"({"index":2,"data":1})"), HasSubstr("index"));
  EXPECT_THAT(form_refusal<Either>(R"({"index":-1,"data":1})"), StartsWith("v"));
  EXPECT_EQ(form_refusal<Either>(R"({"index":1,"data":1})"), "v.data isn't a text");
}

std::string nested_json(int depth) {
  std::string text;
  for (int i = 1; i < depth; ++i) text += R"({"next":)";
  text += R"({"next":null})";
  return text.append(static_cast<std::size_t>(depth - 1), '}');
}

TEST(JsonDecoding, RefusesMoreThan128Levels) {
  EXPECT_EQ(json_refusal<Nested>(nested_json(128)), "nothing was thrown");
  EXPECT_THAT(json_refusal<Nested>(nested_json(129)),
              EndsWith("is nested more than 128 levels deep"));
  std::string unknown = R"({"next":null,"x":)";
  unknown.append(1'000'000, '[').append(1'000'000, ']').append("}");
  EXPECT_NE(json_refusal<Nested>(unknown), "nothing was thrown");
}

TEST(JsonDecoding, WrapsExceptionsOfATypeInItsOwnError) {
  EXPECT_EQ(form_refusal<std::vector<Moody>>("[{}]"), "v[0]: not today");
  EXPECT_THAT(form_refusal<Rude>("{}"), HasSubstr("isn't a std::exception"));
}

/// A value that refuses to be written and to be read, in words of its own.
struct Stubborn {
  template <class Archive>
  void save(Archive&) const {
    throw std::runtime_error{"no"};
  }
  template <class Archive>
  void load(Archive&) {
    throw std::runtime_error{"no"};
  }
};
/// Its name is gone when the exception is met.
struct NamedOnTheFly {
  Stubborn stubborn;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::make_nvp(std::string("a name that was made for this call").c_str(), stubborn));
  }
};

TEST(JsonDecoding, NamesThePathThroughTemporaryNames) {
  EXPECT_EQ(
      (json_refusal<Box<std::map<std::string, Stubborn>>>(R"({"v":{"a key of many letters":{}}})")),
      "v.a key of many letters: no");
  EXPECT_EQ(json_refusal<NamedOnTheFly>(R"({"a name that was made for this call":{}})"),
            "a name that was made for this call: no");
  EXPECT_EQ(json_refusal<NamedOnTheFly>(R"({"b":1,"a name that was made for this call":{}})"),
            "a name that was made for this call: no");
}

TEST(JsonEncoding, NamesThePathThroughTemporaryNames) {
  const std::map<Id<Basket>, Stubborn> map{{Id<Basket>::from("a-key-of-many-letters"), {}}};
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::map<Id<Basket>, Stubborn>>{map}),
            "v.a-key-of-many-letters: no");
  EXPECT_EQ(encode_refusal(Codec::json, NamedOnTheFly{}), "a name that was made for this call: no");
}

TEST(JsonDecoding, RefusesMoreThan64MiB) {
  const std::string text(codec::max_payload_size + 1, ' ');
  EXPECT_EQ(json_refusal<Box<int>>(text), "the payload is larger than 64 MiB");
}

TEST(JsonEncoding, NamesThePathOfANumberThatIsNotFinite) {
  Order order{"c", {}, {{"a", 1, 0.5}, {"b", 1, std::nan("")}}};
  EXPECT_EQ(encode_refusal(Codec::json, order),
            "lines[1].price is NaN or infinite, which JSON can't hold");
  order.lines[1].price = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode_refusal(Codec::json, order),
            "lines[1].price is NaN or infinite, which JSON can't hold");
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::map<std::string, float>>{{{"k", -INFINITY}}}),
            "v.k is NaN or infinite, which JSON can't hold");
  EXPECT_EQ(encode_refusal(Codec::json, std::numeric_limits<double>::infinity()),
            "the payload is NaN or infinite, which JSON can't hold");
}

TEST(JsonEncoding, NamesThePathOfTextThatIsNotUtf8) {
  EXPECT_EQ(encode_refusal(Codec::json, Order{"\xff", {}, {}}), "customer isn't valid UTF-8");
  EXPECT_EQ(encode_refusal(Codec::json, Unnamed{{"a", 1, 0}, {"\xc3", 1, 0}}),
            "value1.sku isn't valid UTF-8");
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::map<std::string, int>>{{{"\xff", 1}}}),
            "v.(a name) isn't valid UTF-8");
}

TEST(JsonEncoding, RefusesAnEnumeratorWithoutAName) {
  EXPECT_EQ(encode_refusal(Codec::json, Box<Size>{static_cast<Size>(7)}),
            "v is 7, for which enum_names has no name");
}

TEST(JsonEncoding, RefusesATimeThatRfc3339CannotSay) {
  EXPECT_EQ(encode_refusal(Codec::json, Box<Timestamp>{Timestamp::max()}),
            "v lies outside the years 0000 to 9999");
  EXPECT_EQ(encode_refusal(Codec::json, Box<Timestamp>{Timestamp::min()}),
            "v lies outside the years 0000 to 9999");
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::chrono::sys_days>{std::chrono::sys_days::max()}),
            "v lies outside the years 0000 to 9999");
}

TEST(JsonEncoding, RefusesMoreThan128Levels) {
  EXPECT_EQ(json_of(nested(128)), nested_json(128));
  EXPECT_THAT(encode_refusal(Codec::json, nested(129)),
              EndsWith("is nested more than 128 levels deep"));
}

TEST(JsonEncoding, WrapsExceptionsOfATypeInItsOwnError) {
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::vector<Moody>>{std::vector<Moody>(1)}),
            "v[0]: not today");
  EXPECT_THAT(encode_refusal(Codec::json, Box<Rude>{}), HasSubstr("isn't a std::exception"));
}

TEST(JsonEncoding, RefusesMoreThan64MiB) {
  const std::string text(codec::max_payload_size, 'x');
  EXPECT_EQ(encode_refusal(Codec::json, Box<std::string>{text}),
            "the payload is larger than 64 MiB");
}

TEST(JsonEncoding, LeavesTheBytesBeforeItAsTheyWere) {
  std::string bytes = "before";

  EXPECT_THROW(codec::encode(Codec::json, Order{"c", "\xff", {}}, bytes), codec::EncodeError);

  EXPECT_EQ(bytes, "before");
}

}  // namespace
}  // namespace stela::test::json_refusal_test
