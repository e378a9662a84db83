// What every event store does with what is appended.
#include "contract/event_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::append_contract {
namespace {

using test::EventStoreContract;
using test::lines;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_P(EventStoreContract, ReturnsTheAppendedEvents) {
  const NewEvent event{"order.placed", 3, true, R"({"customer":"jane"})"};

  const AppendResult result = append("order-1", ExpectedVersion::none(), {event});

  EXPECT_EQ(result.first, GlobalSequence{1});
  EXPECT_EQ(result.last, GlobalSequence{1});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{1}));
  int seen = 0;
  for (const StoredEvent& stored : store->read_stream(StreamId::parse("order-1"))) {
    ++seen;
    EXPECT_EQ(stored.sequence, GlobalSequence{1});
    EXPECT_EQ(stored.stream.name(), "order-1");
    EXPECT_EQ(stored.version, StreamVersion{1});
    EXPECT_EQ(stored.type(), "order.placed");
    EXPECT_EQ(stored.schema_version(), 3);
    EXPECT_TRUE(stored.publishes());
    EXPECT_FALSE(stored.id.is_nil());
    EXPECT_EQ(stored.recorded_at, testing::ManualClock::start);
    EXPECT_EQ(stored.correlation_id(), stored.id.to_string());
    EXPECT_TRUE(stored.causation_id.is_nil());
    EXPECT_EQ(stored.published_before, StreamVersion{0});
    EXPECT_EQ(stored.payload, R"({"customer":"jane"})");
  }
  EXPECT_EQ(seen, 1);
}

TEST_P(EventStoreContract, NumbersStreamsAndTheStoreWithoutGaps) {
  append("order-1", {"a", "b"});
  append("order-2", {"c"});
  append("order-1", {"d"});

  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 a", "2 order-1@2 b", "3 order-2@1 c", "4 order-1@3 d"));
  EXPECT_EQ(store->last_sequence(), GlobalSequence{4});
}

TEST_P(EventStoreContract, HonoursEachExpectedVersion) {
  const NewEvent event{"a", 1, false, "{}"};
  const auto conflict = [&](ExpectedVersion expected) {
    try {
      append("order-1", expected, {event});
    } catch (const ConcurrencyConflict& e) {
      return e.expected() + " but " + std::to_string(e.actual().value());
    }
    return std::string{"appended"};
  };

  EXPECT_EQ(conflict(ExpectedVersion::exactly(StreamVersion{1})), "version 1 but 0");
  EXPECT_EQ(conflict(ExpectedVersion::none()), "appended");
  EXPECT_EQ(conflict(ExpectedVersion::none()), "no stream but 1");
  EXPECT_EQ(conflict(ExpectedVersion::exactly(StreamVersion{0})), "no stream but 1");
  EXPECT_EQ(conflict(ExpectedVersion::exactly(StreamVersion{2})), "version 2 but 1");
  EXPECT_EQ(conflict(ExpectedVersion::exactly(StreamVersion{1})), "appended");
  EXPECT_EQ(conflict(ExpectedVersion::any()), "appended");
  EXPECT_EQ(conflict(ExpectedVersion::exactly(StreamVersion::max())),
            "version 9223372036854775807 but 3");
  EXPECT_THROW((void)ExpectedVersion::exactly(StreamVersion{-1}), UsageError);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{3});
}

TEST_P(EventStoreContract, AppendsToAllNamedStreamsOrToNone) {
  append("stock-1", {"s"});
  const StreamId order = StreamId::parse("order-1");
  const StreamId stock = StreamId::parse("stock-1");
  const NewEvent event{"a", 1, false, "{}"};

  const std::vector<StreamAppend> lost{{order, ExpectedVersion::none(), {&event, 1}},
                                       {stock, ExpectedVersion::none(), {&event, 1}}};
  EXPECT_THROW(store->append({.streams = lost}), ConcurrencyConflict);
  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 stock-1@1 s"));

  const std::vector<StreamAppend> won{
      {order, ExpectedVersion::none(), {&event, 1}},
      {stock, ExpectedVersion::exactly(StreamVersion{1}), {&event, 1}}};
  const AppendResult result = store->append({.streams = won});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{1}, StreamVersion{2}));
  EXPECT_EQ(result.first, GlobalSequence{2});
  EXPECT_EQ(result.last, GlobalSequence{3});
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 stock-1@1 s", "2 order-1@1 a", "3 stock-1@2 a"));
}

TEST_P(EventStoreContract, ChecksAStreamThatGetsNoEvents) {
  append("stock-1", {"s"});
  const StreamId stock = StreamId::parse("stock-1");
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const std::vector<StreamAppend> request{{stock, ExpectedVersion::none(), {}},
                                          {order, ExpectedVersion::none(), {&event, 1}}};

  EXPECT_THROW(store->append({.streams = request}), ConcurrencyConflict);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

TEST_P(EventStoreContract, ChecksVersionsWithoutAnyEvent) {
  append("stock-1", {"s"});
  const auto check = [&](std::string_view stream, ExpectedVersion expected) {
    return append(stream, expected, {}).versions.front();
  };

  EXPECT_EQ(check("stock-1", ExpectedVersion::exactly(StreamVersion{1})), StreamVersion{1});
  EXPECT_EQ(check("stock-1", ExpectedVersion::any()), StreamVersion{1});
  EXPECT_EQ(check("order-1", ExpectedVersion::none()), StreamVersion{0});
  EXPECT_THROW(check("stock-1", ExpectedVersion::none()), ConcurrencyConflict);
  EXPECT_THROW(check("stock-1", ExpectedVersion::exactly(StreamVersion{2})), ConcurrencyConflict);
  EXPECT_THROW(check("order-1", ExpectedVersion::exactly(StreamVersion{1})), ConcurrencyConflict);
  append("order-1", ExpectedVersion::none(), {{"a", 1, false, "{}"}});

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 stock-1@1 s", "2 order-1@1 a"));
}

TEST_P(EventStoreContract, ChecksVersionsAfterASavepointRolledBack) {
  const StreamId stock = StreamId::parse("stock-1");
  const NewEvent event{"s", 1, false, "{}"};
  const auto append_one = [&](Transaction& transaction, ExpectedVersion expected,
                              std::span<const NewEvent> events) {
    const StreamAppend one{stock, expected, events};
    return transaction.append({.streams = {&one, 1}}).versions.front();
  };
  const auto first = ExpectedVersion::exactly(StreamVersion{1});

  store->transact([&](Transaction& transaction) {
    const auto and_back = [&](Transaction& inner) {
      append_one(inner, ExpectedVersion::none(), {&event, 1});
      EXPECT_EQ(append_one(inner, first, {}), StreamVersion{1});
      throw std::runtime_error{"no"};
    };
    EXPECT_THROW(transaction.transact(and_back), std::runtime_error);
    EXPECT_THROW(append_one(transaction, first, {}), ConcurrencyConflict);
    EXPECT_EQ(append_one(transaction, ExpectedVersion::none(), {}), StreamVersion{0});
    append_one(transaction, ExpectedVersion::none(), {&event, 1});
    EXPECT_EQ(append_one(transaction, first, {}), StreamVersion{1});
    EXPECT_THROW(append_one(transaction, ExpectedVersion::none(), {}), ConcurrencyConflict);
  });

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 stock-1@1 s"));
}

TEST_P(EventStoreContract, KeepsTheIdOfACheckThatHeld) {
  append("stock-1", {"s"});
  const auto first = ExpectedVersion::exactly(StreamVersion{1});
  EXPECT_THROW(append("stock-1", ExpectedVersion::none(), {}, "check-1"), ConcurrencyConflict);
  EXPECT_FALSE(append("stock-1", first, {}, "check-1").repeated);
  append("stock-1", {"s"});

  const AppendResult again = append("stock-1", first, {}, "check-1");
  EXPECT_TRUE(again.repeated);
  EXPECT_THAT(again.versions, ElementsAre(StreamVersion{0}));
}

TEST_P(EventStoreContract, KeepsPayloadsOfEverySize) {
  const std::string large(10 * 1024 * 1024, '\x01');
  const std::string zeros(3, '\0');
  append("order-1", ExpectedVersion::none(),
         {{"empty", 1, false, ""}, {"large", 1, false, large}, {"zeros", 1, false, zeros}});

  std::vector<std::string> payloads;
  for (const StoredEvent& event : store->read_all()) payloads.emplace_back(event.payload);
  ASSERT_THAT(payloads, SizeIs(3));
  EXPECT_EQ(payloads[0], "");
  EXPECT_TRUE(payloads[1] == large);
  EXPECT_EQ(payloads[2], zeros);
}

TEST_P(EventStoreContract, RefusesInvalidEvents) {
  for (const NewEvent& event : {NewEvent{"", 1, false, "{}"}, NewEvent{"a b", 1, false, "{}"},
                                NewEvent{".a", 1, false, "{}"}, NewEvent{"a", 0, false, "{}"},
                                NewEvent{"a", -1, false, "{}"}, NewEvent{"a\n", 1, false, "{}"}}) {
    EXPECT_THROW(append("order-1", ExpectedVersion::any(), {event}), UsageError) << event.type;
  }
  EXPECT_EQ(store->last_sequence(), GlobalSequence{0});
}

TEST_P(EventStoreContract, KeepsTheContextOfAnAppend) {
  const Context context{.correlation_id = "request-7",
                        .causation_id = make_uuid(),
                        .actor = "jane",
                        .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                        .headers = {{"tenant", "acme"}, {"note", "ünï\"quoted\""}}};
  {
    const ContextScope scope{context};
    append("order-1", {"a", "b"});
  }
  append("order-1", {"c"});

  std::vector<Context> contexts;
  for (const StoredEvent& event : store->read_all()) contexts.push_back(event.context());
  ASSERT_THAT(contexts, SizeIs(3));
  EXPECT_EQ(contexts[0], context);
  EXPECT_EQ(contexts[1], context);
  EXPECT_EQ(contexts[2].actor, "");
}

TEST_P(EventStoreContract, CorrelatesEventsAppendedTogether) {
  append("order-1", {"a", "b"});
  append("order-1", {"c"});

  std::vector<std::string> ids;
  std::vector<std::string> correlations;
  for (const StoredEvent& event : store->read_all()) {
    ids.push_back(event.id.to_string());
    correlations.push_back(event.correlation_id());
  }
  EXPECT_THAT(correlations, ElementsAre(ids[0], ids[0], ids[2]));
}

TEST_P(EventStoreContract, RemembersTheLastPublishedVersion) {
  const NewEvent published{"p", 1, true, "{}"};
  const NewEvent kept{"l", 1, false, "{}"};
  append("order-1", ExpectedVersion::any(), {kept, published, kept});
  append("order-1", ExpectedVersion::any(), {kept, published});
  append("order-1", ExpectedVersion::any(), {published});
  append("order-2", ExpectedVersion::any(), {published});

  std::vector<std::int64_t> before;
  for (const StoredEvent& event : store->read_all()) {
    before.push_back(event.published_before.value());
  }
  EXPECT_THAT(before, ElementsAre(0, 0, 2, 2, 2, 5, 0));
}

TEST_P(EventStoreContract, RepeatsAnAppendUnderItsId) {
  const NewEvent event{"a", 1, false, "{}"};
  const AppendResult first = append("order-1", ExpectedVersion::none(), {event}, "cmd-1");
  append("order-1", {"b"});
  const AppendResult again = append("order-1", ExpectedVersion::none(), {event}, "cmd-1");

  EXPECT_FALSE(first.repeated);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, first.first);
  EXPECT_EQ(again.last, first.last);
  EXPECT_EQ(again.versions, first.versions);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{2});
  EXPECT_THROW(append("order-2", ExpectedVersion::none(), {event}, "cmd-1"), UsageError);
  EXPECT_THROW(append("order-1", ExpectedVersion::any(), {event, event}, "cmd-1"), UsageError);
  EXPECT_THROW(append("order-1", ExpectedVersion::any(), {event}, std::string(129, 'x')),
               UsageError);
}

TEST_P(EventStoreContract, RepeatsAnAppendThatNamesAStreamTwice) {
  const NewEvent event{"a", 1, false, "{}"};
  const StreamId one = StreamId::parse("order-1");
  const StreamId other = StreamId::parse("order-2");
  const std::vector<StreamAppend> appends{{one, ExpectedVersion::none(), {&event, 1}},
                                          {other, ExpectedVersion::none(), {&event, 1}},
                                          {one, ExpectedVersion::any(), {&event, 1}}};
  store->append({.streams = appends, .append_id = "cmd-1"});

  const AppendResult again = store->append({.streams = appends, .append_id = "cmd-1"});
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.last, GlobalSequence{3});
  EXPECT_THROW(store->append({.streams = {appends.data(), 2}, .append_id = "cmd-1"}), UsageError);
}

TEST_P(EventStoreContract, RefusesAnIdThatIsNoText) {
  const NewEvent event{"a", 1, false, "{}"};
  for (const std::string_view id : {std::string_view{"a\0b", 3}, std::string_view{"\xc3\x28"}}) {
    EXPECT_THROW(append("order-1", ExpectedVersion::any(), {event}, id), UsageError);
    EXPECT_FALSE(store->find_append(id));
    store->transact([&](Transaction& transaction) { EXPECT_FALSE(transaction.find_append(id)); });
  }
  EXPECT_EQ(append("order-1", ExpectedVersion::any(), {event}, "caf\xc3\xa9").first,
            GlobalSequence{1});
}

TEST_P(EventStoreContract, ForgetsTheIdOfAnAppendThatFailed) {
  const NewEvent event{"a", 1, false, "{}"};
  EXPECT_THROW(append("order-1", ExpectedVersion::exactly(StreamVersion{5}), {event}, "cmd-1"),
               ConcurrencyConflict);
  EXPECT_FALSE(append("order-1", ExpectedVersion::none(), {event}, "cmd-1").repeated);
}

}  // namespace
}  // namespace stela::append_contract
