// The kit that tells when a stored payload is read as something else.
#include "support/messages.hpp"
#include "support/rich_event.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/golden.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/vector.hpp>

#include <fstream>
#include <sstream>

namespace stela::test::golden_payloads_test {
namespace {

using ::testing::AllOf;
using testing::GoldenFailed;
using testing::GoldenPayloads;
using ::testing::HasSubstr;
using ::testing::Not;

struct Line {
  std::string sku;
  std::int32_t quantity = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(sku), CEREAL_NVP(quantity));
  }
};
enum class Size { small, large };
constexpr auto enum_names(Size) {
  return std::array{std::pair{Size::small, "small"}, std::pair{Size::large, "large"}};
}

struct Ordered {
  static constexpr EventType event_type{"order.placed", 1, local};
  std::int64_t cents = 0;
  std::optional<std::string> note;
  Size size{};
  std::vector<Line> lines;
  std::unordered_map<std::string, bool> flags;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(note), CEREAL_NVP(size), CEREAL_NVP(lines),
            CEREAL_NVP(flags));
  }
};
const Ordered sample{500, "soon", Size::large, {{"mug", 2}}, {{"b", true}, {"a", false}}};

/// The same event as programmers changed it later.
struct InDoubles : Ordered {
  double cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(note), CEREAL_NVP(size), CEREAL_NVP(lines),
            CEREAL_NVP(flags));
  }
};
struct Renamed : Ordered {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::make_nvp("price", cents), CEREAL_NVP(note), CEREAL_NVP(size), CEREAL_NVP(lines),
            CEREAL_NVP(flags));
  }
};
struct WithLessAndMore : Ordered {
  std::optional<std::int64_t> discount;
  std::unique_ptr<Line> gift;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(size), CEREAL_NVP(lines), CEREAL_NVP(flags),
            CEREAL_NVP(discount), CEREAL_NVP(gift));
  }
};
struct WithAnOptional : Ordered {
  std::optional<std::int64_t> discount;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(note), CEREAL_NVP(size), CEREAL_NVP(lines),
            CEREAL_NVP(flags), CEREAL_NVP(discount));
  }
};
struct InAnotherOrder : Ordered {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(note), CEREAL_NVP(lines), CEREAL_NVP(size),
            CEREAL_NVP(flags));
  }
};

class GoldenPayload : public ::testing::TestWithParam<Codec> {
 protected:
  GoldenPayload() {
    EXPECT_THAT(failure_of(sample), HasSubstr("order.placed v1 had no golden payload"));
  }
  template <class E>
  std::string failure_of(const E& event) {
    return message_of<GoldenFailed>([&] { golden.check(event); });
  }

  TempDir dir;
  const GoldenPayloads golden{dir.file("golden"), GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryCodec, GoldenPayload,
                         ::testing::Values(Codec::json, Codec::portable_binary),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

const std::string no_failure = "nothing was thrown";

TEST_P(GoldenPayload, IsReadAsItWasWritten) {
  EXPECT_EQ(failure_of(sample), no_failure);
  // Whatever the sample is now.
  EXPECT_EQ(failure_of(Ordered{}), no_failure);
}

TEST_P(GoldenPayload, NamesAFieldThatChangedItsKind) {
  EXPECT_THAT(failure_of(InDoubles{}),
              AllOf(HasSubstr("order.placed v1 isn't what is stored in "),
                    HasSubstr("\n  cents was int64 = 500 and is double = "),
                    HasSubstr("new version that supersedes this one")));
}

TEST_P(GoldenPayload, IsReadByAnEventOfEveryShape) {
  EXPECT_THAT(failure_of(sample_rich_event()), HasSubstr("had no golden payload"));
  EXPECT_EQ(failure_of(sample_rich_event()), no_failure);
}

TEST_P(GoldenPayload, IsRefusedByNameIfALineIsNoField) {
  const std::string file = dir.file("golden/order.placed.v1.golden");
  std::ofstream{file, std::ios::app} << "<<<<<<< HEAD\n";

  EXPECT_THAT(failure_of(sample),
              AllOf(HasSubstr(file + " isn't a golden payload"), HasSubstr("<<<<<<< HEAD")));
}

class GoldenJson : public GoldenPayload {};
INSTANTIATE_TEST_SUITE_P(Json, GoldenJson, ::testing::Values(Codec::json));

TEST_P(GoldenJson, IsALineAndItsFields) {
  std::ifstream in{dir.file("golden/order.placed.v1.golden")};
  std::stringstream text;
  text << in.rdbuf();

  EXPECT_EQ(text.str(), R"({"cents":500,"note":"soon","size":"large",)"
                        R"("lines":[{"sku":"mug","quantity":2}],"flags":{"a":false,"b":true}})"
                        "\n"
                        "cents: int64 = 500\n"
                        "note.nullopt: bool = false\n"
                        "note.data: text = \"soon\"\n"
                        "size: text = \"large\"\n"
                        "lines: list of 1\n"
                        "lines[0].sku: text = \"mug\"\n"
                        "lines[0].quantity: int32 = 2\n"
                        "flags: list of 2\n"
                        "flags[0].key: text = \"a\"\n"
                        "flags[0].value: bool = false\n"
                        "flags[1].key: text = \"b\"\n"
                        "flags[1].value: bool = true\n");
}

TEST_P(GoldenJson, NamesMissingFields) {
  EXPECT_THAT(failure_of(Renamed{}), HasSubstr("it isn't read any more: price is missing"));
}

TEST_P(GoldenJson, NamesAFieldThatIsGone) {
  EXPECT_THAT(
      failure_of(WithLessAndMore{}),
      AllOf(HasSubstr("note.data is gone; it was text = \"soon\""), Not(HasSubstr("new:"))));
}

TEST_P(GoldenJson, MayGetAnOptional) {
  EXPECT_EQ(failure_of(WithAnOptional{}), no_failure);
  EXPECT_EQ(failure_of(InAnotherOrder{}), no_failure);
}

class GoldenBinary : public GoldenPayload {};
INSTANTIATE_TEST_SUITE_P(Binary, GoldenBinary, ::testing::Values(Codec::portable_binary));

TEST_P(GoldenBinary, IsRefusedByNameIfItIsntHex) {
  const std::string file = dir.file("golden/order.placed.v1.golden");
  for (const std::string_view payload : {"0x", "12 4", "123"}) {
    std::ofstream{file} << payload << '\n';
    EXPECT_THAT(failure_of(sample), HasSubstr(file + " isn't a golden payload")) << payload;
  }
}

TEST_P(GoldenBinary, MayGetNothing) {
  EXPECT_NE(failure_of(WithAnOptional{}), no_failure);
  EXPECT_NE(failure_of(InAnotherOrder{}), no_failure);
}

}  // namespace
}  // namespace stela::test::golden_payloads_test
