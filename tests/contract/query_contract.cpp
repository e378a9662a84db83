// What every event store answers to queries by type and tag.
#include "contract/tagged_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::query_contract {
namespace {

using test::item;
using test::lines;
using test::QueryContract;
using test::tags_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(QueryContract, FindsEventsByTagAndByStream) {
  enrol();

  EXPECT_THAT(read({{item({}, {"student-s1"})}}),
              ElementsAre("3 course-c1@2 subscribed", "4 course-c2@2 subscribed",
                          "6 student-s1@1 renamed"));
  EXPECT_THAT(
      read({{item({}, {"course-c1"})}}),
      ElementsAre("1 course-c1@1 defined", "3 course-c1@2 subscribed", "5 course-c1@3 subscribed"));
  EXPECT_THAT(read({{item({}, {"student-s3"})}}), IsEmpty());
}

TEST_P(QueryContract, FindsEventsOfOneOfTheTypesWithAllOfTheTags) {
  enrol();

  EXPECT_THAT(read({{item({"subscribed"}, {"course-c1", "student-s1"})}}),
              ElementsAre("3 course-c1@2 subscribed"));
  EXPECT_THAT(read({{item({"subscribed"}, {"student-s1", "term-7"})}}),
              ElementsAre("4 course-c2@2 subscribed"));
  EXPECT_THAT(
      read({{item({"defined", "renamed"}, {})}}),
      ElementsAre("1 course-c1@1 defined", "2 course-c2@1 defined", "6 student-s1@1 renamed"));
  EXPECT_THAT(read({{item({"defined", "renamed"}, {"student-s1"})}}),
              ElementsAre("6 student-s1@1 renamed"));
  EXPECT_THAT(read({{item({"dropped"}, {"course-c1"})}}), IsEmpty());
  EXPECT_THAT(read({{item({"dropped"}, {})}}), IsEmpty());
}

TEST_P(QueryContract, FindsEventsWithTwoTagsOfOneCategory) {
  append_tagged("account-a", "moved", {"account-b"});
  append_tagged("account-b", "moved", {"account-a"});
  append_tagged("account-a", "moved", {"account-c", "account-a"});
  append_tagged("bank-1", "moved", {"account-a", "account-b", "account-c"});
  append_tagged("account-a", "moved", {"account-a"});

  EXPECT_THAT(read({{item({"moved"}, {"account-a", "account-b"})}}),
              ElementsAre("1 account-a@1 moved", "2 account-b@1 moved", "4 bank-1@1 moved"));
  EXPECT_THAT(read({{item({}, {"account-b", "account-a"})}}, {.direction = Direction::backward}),
              ElementsAre("4 bank-1@1 moved", "2 account-b@1 moved", "1 account-a@1 moved"));
  EXPECT_THAT(read({{item({}, {"account-c", "account-b", "account-a"})}}),
              ElementsAre("4 bank-1@1 moved"));
  EXPECT_THAT(read({{item({}, {"account-c", "account-a"})}}),
              ElementsAre("3 account-a@2 moved", "4 bank-1@1 moved"));
  EXPECT_THAT(read({{item({}, {"account-c", "account-c"})}}),
              ElementsAre("3 account-a@2 moved", "4 bank-1@1 moved"));
  EXPECT_THAT(read({{item({}, {"account-c", "bank-1"})}}), ElementsAre("4 bank-1@1 moved"));
}

TEST_P(QueryContract, GivesEachEventOnceInTheOrderOfTheStore) {
  enrol();

  EXPECT_THAT(read({{item({}, {"student-s2"}), item({}, {"course-c1"}), item({"subscribed"}, {})}}),
              ElementsAre("1 course-c1@1 defined", "3 course-c1@2 subscribed",
                          "4 course-c2@2 subscribed", "5 course-c1@3 subscribed"));
  EXPECT_EQ(read(Query::all()).size(), 6U);
}

TEST_P(QueryContract, ReadsAPartInEitherDirection) {
  enrol();
  const Query both{{item({}, {"student-s1"}), item({}, {"course-c1"})}};

  EXPECT_THAT(read(both, {.after = GlobalSequence{3}, .up_to = GlobalSequence{5}}),
              ElementsAre("4 course-c2@2 subscribed", "5 course-c1@3 subscribed"));
  EXPECT_THAT(read(both, {.direction = Direction::backward, .limit = 2}),
              ElementsAre("6 student-s1@1 renamed", "5 course-c1@3 subscribed"));
  EXPECT_THAT(read(both, {.after = GlobalSequence{2},
                          .up_to = GlobalSequence{4},
                          .direction = Direction::backward}),
              ElementsAre("4 course-c2@2 subscribed", "3 course-c1@2 subscribed"));
  EXPECT_THAT(read({{item({"subscribed"}, {})}}, {.direction = Direction::backward, .limit = 1}),
              ElementsAre("5 course-c1@3 subscribed"));
  EXPECT_THAT(read(both, {.after = GlobalSequence{6}}), IsEmpty());
  EXPECT_THAT(read(both, {.after = GlobalSequence::max()}), IsEmpty());
  EXPECT_THAT(read(both, {.limit = 0}), IsEmpty());
  EXPECT_THAT(read(Query::all(), {.direction = Direction::backward, .limit = 1}),
              ElementsAre("6 student-s1@1 renamed"));
}

TEST_P(QueryContract, GivesTheTagsThatWereDeclaredWithoutThatOfTheStream) {
  append_tagged("course-c1", "a", {"student-s2", "course-c1", "student-s1", "student-s2"});
  append_tagged("course-c1", "b", {});

  std::vector<std::string> tags;
  for (const StoredEvent& event : store->read({{item({}, {"course-c1"})}})) {
    tags.emplace_back(event.tags);
  }
  for (const StoredEvent& event : store->read_all({.with_tags = true})) {
    tags.emplace_back(event.tags);
  }
  for (const StoredEvent& event : store->read_all({.event_types = {"a"}, .with_tags = true})) {
    tags.emplace_back(event.tags);
  }
  EXPECT_THAT(tags, ElementsAre("student-s2 student-s1", "", "student-s2 student-s1", "",
                                "student-s2 student-s1"));
}

TEST_P(QueryContract, ReadsThroughPagesOfEvents) {
  constexpr int events = 3000;
  const Tag odd = Tag::parse("parity-odd");
  std::vector<NewEvent> batch;
  for (int i = 1; i <= events; ++i) {
    NewEvent event{.type = i % 3 == 0 ? "third" : "other", .payload = "{}"};
    if (i % 2 == 1) event.tags = {&odd, 1};
    batch.push_back(event);
  }
  append("count-1", ExpectedVersion::none(), batch);

  const auto count = [&](const Query& query, Direction direction) {
    std::int64_t found = 0;
    std::int64_t last = direction == Direction::forward ? 0 : events + 1;
    for (const StoredEvent& event : store->read(query, {.direction = direction})) {
      const std::int64_t sequence = event.sequence.value();
      EXPECT_TRUE(direction == Direction::forward ? last < sequence : last > sequence);
      last = sequence;
      ++found;
    }
    return found;
  };
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    EXPECT_EQ(count({{item({}, {"parity-odd"})}}, direction), 1500);
    EXPECT_EQ(count({{item({"third"}, {"parity-odd"})}}, direction), 500);
    EXPECT_EQ(count({{item({"third"}, {"parity-odd", "count-1"})}}, direction), 500);
    EXPECT_EQ(count({{item({"third"}, {}), item({}, {"parity-odd"})}}, direction), 2000);
    EXPECT_EQ(count({{item({}, {"count-1"})}}, direction), 3000);
    EXPECT_EQ(count(Query::all(), direction), 3000);
  }
}

TEST_P(QueryContract, AnswersUpToTheEventsOfTheTimeOfTheCall) {
  append_tagged("course-c1", "a", {"student-s1"});
  EventRange range = store->read({{item({}, {"student-s1"})}});
  EXPECT_EQ(range.next_page().size(), 1U);
  append_tagged("course-c1", "a", {"student-s1"});
  EXPECT_THAT(range.next_page(), IsEmpty());
}

TEST_P(QueryContract, SeesWhatItsTransactionWrote) {
  store->transact([&](Transaction& transaction) {
    const StreamId stream = StreamId::parse("course-c1");
    const std::vector<Tag> tags = tags_of({"student-s1"});
    const NewEvent event{.type = "a", .payload = "{}", .tags = tags};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    transaction.append({.streams = {&one, 1}});
    const Query query{{item({"a"}, {"student-s1"})}};
    EXPECT_THAT(lines(transaction.read(query)), ElementsAre("1 course-c1@1 a"));
    EXPECT_EQ(transaction.standpoint().head, GlobalSequence{1});
  });
  EXPECT_EQ(store->standpoint().head, GlobalSequence{1});
}

TEST_P(QueryContract, RefusesQueriesThatCannotBeAnswered) {
  EXPECT_THROW(read({}), UsageError);
  EXPECT_THROW(read({{item({"a b"}, {})}}), UsageError);
  Query large;
  large.items.resize(max_query_items + 1, item({"a"}, {}));
  EXPECT_THROW(read(large), UsageError);
  Query many_tags{{item({}, {})}};
  many_tags.items[0].tags.resize(max_tags_of_item + 1, Tag::parse("a-1"));
  EXPECT_THROW(read(many_tags), UsageError);
  EXPECT_THROW(append_tagged("a-1", "a", std::vector<std::string>(max_tags_of_event + 1, "b-1")),
               UsageError);
}

TEST_P(QueryContract, AnswersThousandsOfItems) {
  enrol();
  Query large;
  for (int i = 0; i < 5000; ++i) {
    large.items.push_back(item({"subscribed"}, {"student-s" + std::to_string(i)}));
  }
  EXPECT_THAT(read(large), ElementsAre("3 course-c1@2 subscribed", "4 course-c2@2 subscribed",
                                       "5 course-c1@3 subscribed"));
}

TEST_P(QueryContract, FindsAnAppendByItsId) {
  EXPECT_FALSE(store->find_append("request-1"));
  const AppendResult appended =
      append("order-1", ExpectedVersion::none(),
             {NewEvent{"a", 1, false, "{}"}, NewEvent{"b", 1, false, "{}"}}, "request-1");

  const auto found = store->find_append("request-1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, appended.first);
  EXPECT_EQ(found->last, appended.last);
  EXPECT_TRUE(found->repeated);
}

}  // namespace
}  // namespace stela::query_contract
