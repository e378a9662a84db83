// Causes, effects and correlations, with and without the index of links, on every engine.
#include "support/engine.hpp"
#include "support/histories.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::links_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Each test without an index, with one of all events, and with one of the first few.
enum class Index { none, whole, part };

class Links : public ::testing::TestWithParam<Index> {
 protected:
  /// Appends an event, and remembers its id.
  EventId append(const std::string& stream, const Context& context = {}, EventId id = {}) {
    clock.advance(std::chrono::seconds{1});
    const NewEvent event{.type = "noted", .payload = "{}", .id = id};
    const StreamId name = StreamId::parse(stream);
    const StreamAppend one{name, ExpectedVersion::any(), {&event, 1}};
    const AppendResult result = store.append({.streams = {&one, 1}, .context = context});
    for (const StoredEvent& stored : store.read_at({{result.last}})) id = stored.id;
    ids.push_back(id);
    return id;
  }
  /// An order with a payment and a parcel, a letter of the payment, and a note of no cause.
  ///
  ///     1 order ── 2 payment ── 4 letter
  ///             └─ 5 parcel        3, 6 notes
  void tell() {
    const EventId order = append("order-1");
    const std::string correlation = order.to_string();
    const EventId payment =
        append("payment-1", {.correlation_id = correlation, .causation_id = order});
    append("note-1", {.correlation_id = "request-7"});
    if (GetParam() == Index::part) operations.index_links();
    append("letter-1", {.correlation_id = correlation, .causation_id = payment});
    append("parcel-1", {.correlation_id = "parcels", .causation_id = order});
    append("note-2", {.correlation_id = "request-7"});
    if (GetParam() == Index::whole) operations.index_links();
  }

  static std::vector<std::int64_t> numbers(const LinkedEvents& found) {
    std::vector<std::int64_t> all;
    for (const GlobalSequence sequence : found.sequences) all.push_back(sequence.value());
    return all;
  }
  std::vector<std::int64_t> linked(const LinkQuery& query) {
    return numbers(operations.linked_events(query));
  }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  testing::ManualClock clock;
  Store store = test::open_at(path, {.clock = &clock});
  StoreOperations operations{store};
  std::vector<EventId> ids;
};

TEST_P(Links, LeadFromACorrelationToItsEventsAndTheOneThatBeganIt) {
  tell();
  const std::string order = ids[0].to_string();

  EXPECT_THAT(linked({.correlation = order}), ElementsAre(1, 2, 4));
  EXPECT_THAT(linked({.correlation = order, .direction = Direction::backward}),
              ElementsAre(4, 2, 1));
  EXPECT_THAT(linked({.correlation = "request-7"}), ElementsAre(3, 6));
  EXPECT_THAT(linked({.correlation = "request-8"}), IsEmpty());
}

TEST_P(Links, ArePaged) {
  tell();
  const std::string order = ids[0].to_string();

  EXPECT_THAT(linked({.correlation = order, .limit = 2}), ElementsAre(1, 2));
  EXPECT_THAT(linked({.correlation = order, .from = GlobalSequence{3}, .limit = 2}),
              ElementsAre(4));
  EXPECT_THAT(linked({.correlation = order,
                      .to = GlobalSequence{2},
                      .direction = Direction::backward,
                      .limit = 1}),
              ElementsAre(2));
}

TEST_P(Links, LeadFromACauseToItsEffects) {
  tell();

  EXPECT_THAT(linked({.cause = ids[0]}), ElementsAre(2, 5));
  EXPECT_THAT(linked({.cause = ids[0], .direction = Direction::backward}), ElementsAre(5, 2));
  EXPECT_THAT(linked({.cause = ids[4]}), IsEmpty());
  EXPECT_THAT(operations.effects_of(ids[0], GlobalSequence{2}, 10), ElementsAre(GlobalSequence{5}));
}

TEST_P(Links, LeadToAllThatAnEventLedTo) {
  tell();

  const Effects all = operations.all_effects_of(ids[0], GlobalSequence{1}, 10);
  ASSERT_THAT(all.effects, SizeIs(3));
  EXPECT_EQ(all.effects[1].sequence, GlobalSequence{4});
  EXPECT_EQ(all.effects[1].cause, ids[1]);
  EXPECT_FALSE(all.has_more);

  EXPECT_TRUE(operations.all_effects_of(ids[0], GlobalSequence{1}, 2).has_more);
  EXPECT_THAT(operations.all_effects_of(ids[3], GlobalSequence{4}, 10).effects, IsEmpty());
}

TEST_P(Links, FindAnEventByAnIdOfItsTimeOrOfAnother) {
  const auto random = *Uuid::parse("0aa0f2a9-6a1f-4cf5-8f34-28f5b4b5c1aa");
  const auto early = *Uuid::parse("00000000-0001-7000-8000-000000000001");
  append("order-1", {}, random);
  append("order-2", {}, early);
  tell();

  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(operations.find_event(ids[i]), GlobalSequence{static_cast<std::int64_t>(i) + 1}) << i;
  }
  EXPECT_EQ(operations.find_event(make_uuid()), std::nullopt);
}

TEST_P(Links, FindAnEventAfterTheClockWasPutBack) {
  tell();
  clock.advance(-std::chrono::hours{3});
  const EventId late = append("order-9");

  EXPECT_EQ(operations.find_event(late), GlobalSequence{7});
  EXPECT_EQ(operations.find_event(ids[2]), GlobalSequence{3});
}

TEST_P(Links, AreSound) {
  tell();
  EXPECT_THAT(test::problems_of(store), IsEmpty());
}

std::string name_of(const ::testing::TestParamInfo<Index>& info) {
  switch (info.param) {
    case Index::none:
      return "NoEvents";
    case Index::whole:
      return "AllEvents";
    case Index::part:
      return "SomeEvents";
  }
  return {};
}

INSTANTIATE_TEST_SUITE_P(IndexOf, Links, ::testing::Values(Index::none, Index::whole, Index::part),
                         name_of);

class IndexOfLinks : public Links {
 protected:
  void change(const std::string& sql) {
    if (test::is_on_postgres()) {
      test::run_on_postgres(path, sql);
    } else {
      test::RawSqlite{path}.run(sql);
    }
  }
};

TEST_P(IndexOfLinks, ContinuesWhereItEnded) {
  tell();
  EXPECT_EQ(operations.unindexed_events(), 6);
  const IndexedLinks first = operations.index_links();
  EXPECT_EQ(operations.unindexed_events(), 0);
  append("order-2");
  EXPECT_EQ(operations.unindexed_events(), 1);
  const IndexedLinks second = operations.index_links();

  EXPECT_EQ(first.events, 6);
  EXPECT_EQ(second.events, 1);
  EXPECT_EQ(second.through, GlobalSequence{7});
  EXPECT_TRUE(second.finished);
}

TEST_P(IndexOfLinks, EndsWhereItIsStopped) {
  tell();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(operations.index_links({.stop = stop.get_token()}).finished);
}

TEST_P(IndexOfLinks, IsVerifiedAndBuiltAgain) {
  tell();
  operations.index_links();
  change(
      "DELETE FROM event_links WHERE sequence = 4; INSERT INTO event_links VALUES (77, 2), (5, "
      "99)");

  EXPECT_THAT(test::problems_of(store),
              ElementsAre(HasSubstr("event 4: the index of links doesn't lead to it"),
                          HasSubstr("event 4: the index of links doesn't lead to it"),
                          HasSubstr("event 99: the index of links leads to it by an id"),
                          HasSubstr("event 2: the index of links leads to it by an id")));

  EXPECT_EQ(operations.index_links({.again = true}).events, 6);
  EXPECT_THAT(test::problems_of(store), IsEmpty());
}

TEST_P(IndexOfLinks, IsVerifiedToEndWithTheLog) {
  tell();
  change("UPDATE event_links_through SET sequence = 9");
  EXPECT_THAT(test::problems_of(store), Contains(HasSubstr("it says that event 9 is indexed")));
}

INSTANTIATE_TEST_SUITE_P(BuiltAfter, IndexOfLinks, ::testing::Values(Index::none), name_of);

}  // namespace
}  // namespace stela::links_test
