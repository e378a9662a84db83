#include "support/histories.hpp"
#include "support/messages.hpp"

#include <stela/framework/stream_id.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::stream_id_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

struct Basket {
  static constexpr std::string_view category = "basket";
};

std::string refusal_of(std::string_view name) {
  try {
    (void)StreamId::parse(name);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(StreamId, CanBeTakenApartAgain) {
  const StreamId id = StreamId::of("order", "jane-doe@example.org");

  EXPECT_EQ(id.name(), "order-jane-doe@example.org");
  EXPECT_EQ(StreamId::parse(id.name()).category(), "order");
  EXPECT_EQ(StreamId::parse(id.name()).key(), "jane-doe@example.org");
}

TEST(StreamId, AcceptsKeysOfManyShapes) {
  for (const std::string_view key : {"1", "0190-abc", "a/b", "ключ", "日本", "x.y.z", "-", "--",
                                     "%20", "*", ">", "\"quoted\"", "{}"}) {
    EXPECT_EQ(StreamId::of("order", key).key(), key);
  }
  EXPECT_NO_THROW((void)StreamId::of("order", std::string(190, 'k')));
  EXPECT_NO_THROW((void)StreamId::of(std::string(64, 'c'), "k"));
}

TEST(StreamId, NamesTheRuleThatANameBreaks) {
  EXPECT_THAT(refusal_of(""), HasSubstr("has no '-'"));
  EXPECT_THAT(refusal_of("order"), HasSubstr("has no '-'"));
  EXPECT_THAT(refusal_of("order-"), HasSubstr("key after the first '-' is empty"));
  EXPECT_THAT(refusal_of("-1"), HasSubstr("category"));
  EXPECT_THAT(refusal_of("Order-1"), HasSubstr("category"));
  EXPECT_THAT(refusal_of("1order-1"), HasSubstr("category"));
  EXPECT_THAT(refusal_of("order-a b"), HasSubstr("space"));
  EXPECT_THAT(refusal_of("order-a\nb"), HasSubstr("control character"));
  EXPECT_THAT(refusal_of("order-\x7f"), HasSubstr("control character"));
  EXPECT_THAT(refusal_of("order-\xc2\x85"), HasSubstr("control character"));
  EXPECT_THAT(refusal_of("order-\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal_of(std::string_view{"order-a\0b", 9}), HasSubstr("control character"));
  std::string long_key = "order-";
  EXPECT_THAT(refusal_of(long_key.append(191, 'k')), HasSubstr("190"));
  std::string long_category(65, 'c');
  EXPECT_THAT(refusal_of(long_category.append("-1")), HasSubstr("category"));
}

TEST(StreamId, ShowsOnlyTheBeginningOfALongName) {
  EXPECT_THAT(refusal_of(std::string(100'000, 'x')), SizeIs(Lt(200)));
  EXPECT_THAT(refusal_of(std::string(100'000, '\xae')), SizeIs(Lt(200)));
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ä";
  EXPECT_THAT(refusal_of(umlauts), HasSubstr("ä…'"));
}

TEST(StreamId, IsEmptyOnceItIsMovedFrom) {
  StreamId id = StreamId::parse("order-1");
  const StreamId taken = std::move(id);

  // NOLINTBEGIN(bugprone-use-after-move): what a mistake of that kind comes to.
  EXPECT_EQ(id.name(), "");
  EXPECT_EQ(id.category(), "");
  EXPECT_EQ(id.key(), "");
  testing::MemoryStore store;
  const NewEvent event{"order.noted", 1, true, "{}"};
  const StreamAppend append{id, ExpectedVersion::any(), {&event, 1}};
  EXPECT_THAT(test::message_of<UsageError>([&] {
                store.append({.streams = {&append, 1}});
              }),
              HasSubstr("the stream id is empty: was it moved from?"));
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_THAT(test::lines(store.read_all()), IsEmpty());
}

TEST(Id, StandsForAStreamOfItsCategory) {
  const auto id = Id<Basket>::from("7");

  EXPECT_EQ(id.stream().name(), "basket-7");
  EXPECT_EQ(Id<Basket>::of(id.stream()), id);
  EXPECT_THROW((void)Id<Basket>::of(StreamId::parse("order-7")), UsageError);
  EXPECT_THROW((void)Id<Basket>::from("a b"), UsageError);
}

TEST(Id, GeneratesIncreasingIds) {
  const auto first = Id<Basket>::generate();
  const auto second = Id<Basket>::generate();

  EXPECT_LT(first, second);
  EXPECT_TRUE(Uuid::parse(first.key()));
}

}  // namespace
}  // namespace stela::stream_id_test
