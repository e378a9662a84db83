// What every event store answers.
#include "contract/event_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stela::read_contract {
namespace {

using test::EventStoreContract;
using test::lines;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(EventStoreContract, ReadsAStreamWithinBounds) {
  append("order-1", {"a", "b"});
  append("order-2", {"x"});
  append("order-1", {"c", "d"});
  const StreamId order = StreamId::parse("order-1");
  const auto read = [&](StreamQuery query) { return lines(store->read_stream(order, query)); };

  EXPECT_THAT(read({}), SizeIs(4));
  EXPECT_THAT(read({.from = StreamVersion{2}, .to = StreamVersion{3}}),
              ElementsAre("2 order-1@2 b", "4 order-1@3 c"));
  EXPECT_THAT(read({.up_to = GlobalSequence{3}}), ElementsAre("1 order-1@1 a", "2 order-1@2 b"));
  EXPECT_THAT(read({.direction = Direction::backward, .limit = 2}),
              ElementsAre("5 order-1@4 d", "4 order-1@3 c"));
  EXPECT_THAT(read({.limit = 1}), ElementsAre("1 order-1@1 a"));
  EXPECT_THAT(read({.limit = 0}), IsEmpty());
  EXPECT_THAT(read({.from = StreamVersion{3}, .to = StreamVersion{2}}), IsEmpty());
  EXPECT_THAT(read({.from = StreamVersion{-5}, .to = StreamVersion{-1}}), IsEmpty());
  EXPECT_THAT(lines(store->read_stream(StreamId::parse("order-9"))), IsEmpty());
}

TEST_P(EventStoreContract, ReadsTheStoreThroughFilters) {
  append("order-1", {"a", "b"});
  clock.advance(std::chrono::seconds{10});
  append("stock-1", {"a"});
  clock.advance(std::chrono::seconds{10});
  append("order-2", {"b", "c"});
  const auto read = [&](AllQuery query) { return lines(store->read_all(query)); };
  const Timestamp later = testing::ManualClock::start + std::chrono::seconds{10};

  EXPECT_THAT(read({.categories = {"stock"}}), ElementsAre("3 stock-1@1 a"));
  EXPECT_THAT(read({.event_types = {"b"}}), ElementsAre("2 order-1@2 b", "4 order-2@1 b"));
  EXPECT_THAT(read({.categories = {"order"}, .event_types = {"a", "c"}}),
              ElementsAre("1 order-1@1 a", "5 order-2@2 c"));
  EXPECT_THAT(read({.from = GlobalSequence{2}, .to = GlobalSequence{3}}),
              ElementsAre("2 order-1@2 b", "3 stock-1@1 a"));
  EXPECT_THAT(read({.since = later, .until = later}), ElementsAre("3 stock-1@1 a"));
  EXPECT_THAT(read({.since = later, .direction = Direction::backward, .limit = 2}),
              ElementsAre("5 order-2@2 c", "4 order-2@1 b"));
  EXPECT_THAT(read({.event_types = {"b"}, .direction = Direction::backward}),
              ElementsAre("4 order-2@1 b", "2 order-1@2 b"));
  EXPECT_THAT(read({.streams = {"order-1"}}), ElementsAre("1 order-1@1 a", "2 order-1@2 b"));
  EXPECT_THAT(read({.streams = {"order-2", "stock-1"}, .event_types = {"a", "b"}}),
              ElementsAre("3 stock-1@1 a", "4 order-2@1 b"));
  EXPECT_THAT(read({.streams = {"order-1"}, .direction = Direction::backward, .limit = 1}),
              ElementsAre("2 order-1@2 b"));
  EXPECT_THAT(read({.streams = {"order-9"}}), IsEmpty());
  EXPECT_THAT(read({.categories = {"no_such"}}), IsEmpty());
  EXPECT_THAT(read({.from = GlobalSequence{9}}), IsEmpty());
}

TEST_P(EventStoreContract, ReadsManyPagesInOrder) {
  constexpr int count = 5000;
  std::vector<std::string> types;
  for (int i = 0; i < 50; ++i) types.push_back(i == 49 ? "rare" : "common");
  for (int i = 0; i < count / 50; ++i) append("order-" + std::to_string(i % 7), types);

  std::int64_t expected = 1;
  for (const StoredEvent& event : store->read_all()) {
    ASSERT_EQ(event.sequence.value(), expected++);
  }
  EXPECT_EQ(expected, count + 1);
  for (const StoredEvent& event : store->read_all({.direction = Direction::backward})) {
    ASSERT_EQ(event.sequence.value(), --expected);
  }
  EXPECT_EQ(expected, 1);
  EXPECT_THAT(lines(store->read_all({.event_types = {"rare"}})), SizeIs(count / 50));

  std::int64_t version = 1;
  const StreamId first = StreamId::parse("order-0");
  for (const StoredEvent& event : store->read_stream(first)) {
    ASSERT_EQ(event.version.value(), version++);
  }
  EXPECT_EQ(version, 15 * 50 + 1);
  for (const StoredEvent& event : store->read_stream(first, {.direction = Direction::backward})) {
    ASSERT_EQ(event.version.value(), --version);
  }
  EXPECT_EQ(version, 1);
}

TEST_P(EventStoreContract, ReadsLargePayloadsAmongSmallOnes) {
  // Alone, in a row, first and last, and as large as more than a page.
  const std::vector<std::size_t> sizes{9'000, 20,    8'190, 8'200, 20,     20,      300'000, 20,
                                       9'000, 9'000, 20,    20,    50'000, 300'000, 20,      9'000};
  constexpr int times = 30;
  std::vector<std::size_t> expected;
  std::vector<std::string> payloads;
  for (const std::size_t size : sizes) {
    payloads.push_back("{\"a\":\"" + std::string(size, 'x') + "\"}");
  }
  for (int i = 0; i < times; ++i) {
    std::vector<NewEvent> events;
    for (const std::string& payload : payloads) {
      events.push_back({"a", 1, false, payload});
      expected.push_back(payload.size());
    }
    append("order-" + std::to_string(i % 2), ExpectedVersion::any(), events);
  }
  const auto read = [](EventRange range) {
    std::vector<std::size_t> found;
    for (const StoredEvent& event : range) found.push_back(event.payload.size());
    return found;
  };

  EXPECT_EQ(read(store->read_all()), expected);
  const std::vector<std::size_t> half{expected.begin(), expected.begin() + 16 * times / 2};
  EXPECT_EQ(read(store->read_stream(StreamId::parse("order-0"))), half);
  EXPECT_EQ(read(store->read_all({.categories = {"order"}, .limit = 16 * times / 2})), half);
  const std::vector<std::size_t> turned{expected.rbegin(), expected.rend()};
  EXPECT_EQ(read(store->read_all({.direction = Direction::backward})), turned);
  EXPECT_EQ(
      read(store->read_stream(StreamId::parse("order-1"), {.direction = Direction::backward})),
      (std::vector<std::size_t>{half.rbegin(), half.rend()}));
}

TEST_P(EventStoreContract, ReadsUpToTheLastEventAtItsStart) {
  append("order-1", {"a", "b"});
  EventRange range = store->read_all();
  int seen = 0;
  for (const StoredEvent& event : range) {
    (void)event;
    if (++seen < 10) append("order-1", {"more"});
  }
  EXPECT_EQ(seen, 2);
}

TEST_P(EventStoreContract, ReadsGivenSequences) {
  for (int i = 0; i < 20; ++i) append("order-" + std::to_string(i % 3), {"a"});
  const std::vector<GlobalSequence> wanted{GlobalSequence{12}, GlobalSequence{3},
                                           GlobalSequence{4},  GlobalSequence{12},
                                           GlobalSequence{99}, GlobalSequence{-1}};

  EXPECT_THAT(lines(store->read_at(wanted)),
              ElementsAre("3 order-2@1 a", "4 order-0@2 a", "12 order-2@4 a"));
  EXPECT_THAT(lines(store->read_at({})), IsEmpty());
}

TEST_P(EventStoreContract, ReadsThousandsOfGivenSequences) {
  const std::string payload(1000, 'x');
  std::vector<NewEvent> events(3000, NewEvent{"a", 1, false, payload});
  append("order-1", ExpectedVersion::any(), events);
  std::vector<GlobalSequence> wanted;
  for (int i = 1; i <= 3000; ++i) {
    if (i % 10 != 0) wanted.emplace_back(i);
  }
  std::size_t at = 0;
  for (const StoredEvent& event : store->read_at(wanted)) {
    ASSERT_EQ(event.sequence, wanted[at++]);
  }
  EXPECT_EQ(at, wanted.size());
}

TEST_P(EventStoreContract, KeepsTheNewestSnapshot) {
  const StreamId order = StreamId::parse("order-1");
  append("order-1", {"a", "b", "c"});
  const auto find = [&](std::int64_t version, std::int64_t sequence) {
    const auto found =
        store->find_snapshot(order, StreamVersion{version}, GlobalSequence{sequence});
    return found ? found->payload : "none";
  };

  EXPECT_EQ(find(9, 9), "none");
  store->save_snapshot(order, {StreamVersion{2}, GlobalSequence{2}, 1, "two"});
  store->save_snapshot(order, {StreamVersion{1}, GlobalSequence{1}, 1, "one"});
  EXPECT_EQ(find(9, 9), "two");
  EXPECT_EQ(find(1, 9), "none");
  EXPECT_EQ(find(9, 1), "none");
  store->drop_snapshot(order);
  EXPECT_EQ(find(9, 9), "none");
}

}  // namespace
}  // namespace stela::read_contract
