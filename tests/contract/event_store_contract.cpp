// What every event store does. A new store joins by adding a Subject to the list at the end.
#include "support/orders.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace stela {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct InMemory {
  std::unique_ptr<EventStore> store(const testing::ManualClock& clock, MetricSink* metrics) {
    return std::make_unique<testing::MemoryStore>(
        testing::MemoryStore::Options{.metrics = metrics, .clock = &clock});
  }
};

struct SqliteInMemory {
  std::unique_ptr<EventStore> store(const testing::ManualClock& clock, MetricSink* metrics) {
    return std::unique_ptr<EventStore>{
        new sqlite::Store{sqlite::open_in_memory({.metrics = metrics, .clock = &clock})}};
  }
};

struct SqliteFile {
  std::unique_ptr<EventStore> store(const testing::ManualClock& clock, MetricSink* metrics) {
    return std::unique_ptr<EventStore>{new sqlite::Store{
        sqlite::open(dir.file("shop.db"), {.metrics = metrics, .clock = &clock})}};
  }
  test::TempDir dir;
};

/// One line for each event: "1 order-1@1 order.placed {…}".
std::vector<std::string> lines(EventRange range) {
  std::vector<std::string> all;
  for (const StoredEvent& event : range) {
    all.push_back(std::to_string(event.sequence.value()) + ' ' + event.stream.name() + '@' +
                  std::to_string(event.version.value()) + ' ' + event.type());
  }
  return all;
}

template <class Subject>
class EventStoreContract : public ::testing::Test {
 protected:
  AppendResult append(std::string_view stream, ExpectedVersion expected,
                      std::vector<NewEvent> events, std::string_view append_id = {}) {
    const StreamId id = StreamId::parse(stream);
    const StreamAppend one{id, expected, events};
    return store->append({.streams = {&one, 1}, .append_id = append_id});
  }
  AppendResult append(std::string_view stream, std::vector<std::string> types) {
    std::vector<NewEvent> events;
    for (const std::string& type : types) events.push_back({type, 1, false, "{}"});
    return append(stream, ExpectedVersion::any(), events);
  }

  testing::ManualClock clock;
  test::RecordingMetrics metrics;
  Subject subject;
  std::unique_ptr<EventStore> store = subject.store(clock, &metrics);
};

TYPED_TEST_SUITE_P(EventStoreContract);

TYPED_TEST_P(EventStoreContract, ReturnsWhatWasAppended) {
  const NewEvent event{"order.placed", 3, true, R"({"customer":"jane"})"};

  const AppendResult result = this->append("order-1", ExpectedVersion::none(), {event});

  EXPECT_EQ(result.first, GlobalSequence{1});
  EXPECT_EQ(result.last, GlobalSequence{1});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{1}));
  int seen = 0;
  for (const StoredEvent& stored : this->store->read_stream(StreamId::parse("order-1"))) {
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

TYPED_TEST_P(EventStoreContract, NumbersStreamsAndTheStoreWithoutGaps) {
  this->append("order-1", {"a", "b"});
  this->append("order-2", {"c"});
  this->append("order-1", {"d"});

  EXPECT_THAT(lines(this->store->read_all()),
              ElementsAre("1 order-1@1 a", "2 order-1@2 b", "3 order-2@1 c", "4 order-1@3 d"));
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{4});
}

TYPED_TEST_P(EventStoreContract, HonoursEachExpectedVersion) {
  const NewEvent event{"a", 1, false, "{}"};
  const auto conflict = [&](ExpectedVersion expected) {
    try {
      this->append("order-1", expected, {event});
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
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{3});
}

TYPED_TEST_P(EventStoreContract, AppendsToSeveralStreamsOrToNone) {
  this->append("stock-1", {"s"});
  const StreamId order = StreamId::parse("order-1");
  const StreamId stock = StreamId::parse("stock-1");
  const NewEvent event{"a", 1, false, "{}"};

  const std::vector<StreamAppend> lost{{order, ExpectedVersion::none(), {&event, 1}},
                                       {stock, ExpectedVersion::none(), {&event, 1}}};
  EXPECT_THROW(this->store->append({.streams = lost}), ConcurrencyConflict);
  EXPECT_THAT(lines(this->store->read_all()), ElementsAre("1 stock-1@1 s"));

  const std::vector<StreamAppend> won{
      {order, ExpectedVersion::none(), {&event, 1}},
      {stock, ExpectedVersion::exactly(StreamVersion{1}), {&event, 1}}};
  const AppendResult result = this->store->append({.streams = won});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{1}, StreamVersion{2}));
  EXPECT_THAT(lines(this->store->read_all()),
              ElementsAre("1 stock-1@1 s", "2 order-1@1 a", "3 stock-1@2 a"));
}

TYPED_TEST_P(EventStoreContract, ChecksAStreamThatGetsNoEvents) {
  this->append("stock-1", {"s"});
  const StreamId stock = StreamId::parse("stock-1");
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const std::vector<StreamAppend> request{{stock, ExpectedVersion::none(), {}},
                                          {order, ExpectedVersion::none(), {&event, 1}}};

  EXPECT_THROW(this->store->append({.streams = request}), ConcurrencyConflict);
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{1});
}

TYPED_TEST_P(EventStoreContract, ReadsAStreamWithinBounds) {
  this->append("order-1", {"a", "b"});
  this->append("order-2", {"x"});
  this->append("order-1", {"c", "d"});
  const StreamId order = StreamId::parse("order-1");
  const auto read = [&](StreamQuery query) {
    return lines(this->store->read_stream(order, query));
  };

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
  EXPECT_THAT(lines(this->store->read_stream(StreamId::parse("order-9"))), IsEmpty());
}

TYPED_TEST_P(EventStoreContract, ReadsTheStoreThroughFilters) {
  this->append("order-1", {"a", "b"});
  this->clock.advance(std::chrono::seconds{10});
  this->append("stock-1", {"a"});
  this->clock.advance(std::chrono::seconds{10});
  this->append("order-2", {"b", "c"});
  const auto read = [&](AllQuery query) { return lines(this->store->read_all(query)); };
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

TYPED_TEST_P(EventStoreContract, ReadsManyPagesInOrder) {
  constexpr int count = 5000;
  std::vector<std::string> types;
  for (int i = 0; i < 50; ++i) types.push_back(i == 49 ? "rare" : "common");
  for (int i = 0; i < count / 50; ++i) this->append("order-" + std::to_string(i % 7), types);

  std::int64_t expected = 1;
  for (const StoredEvent& event : this->store->read_all()) {
    ASSERT_EQ(event.sequence.value(), expected++);
  }
  EXPECT_EQ(expected, count + 1);
  for (const StoredEvent& event : this->store->read_all({.direction = Direction::backward})) {
    ASSERT_EQ(event.sequence.value(), --expected);
  }
  EXPECT_EQ(expected, 1);
  EXPECT_THAT(lines(this->store->read_all({.event_types = {"rare"}})), SizeIs(count / 50));

  std::int64_t version = 1;
  const StreamId first = StreamId::parse("order-0");
  for (const StoredEvent& event : this->store->read_stream(first)) {
    ASSERT_EQ(event.version.value(), version++);
  }
  EXPECT_EQ(version, 15 * 50 + 1);
  for (const StoredEvent& event :
       this->store->read_stream(first, {.direction = Direction::backward})) {
    ASSERT_EQ(event.version.value(), --version);
  }
  EXPECT_EQ(version, 1);
}

TYPED_TEST_P(EventStoreContract, ReadsUpToWhatWasThereWhenItBegan) {
  this->append("order-1", {"a", "b"});
  EventRange range = this->store->read_all();
  int seen = 0;
  for (const StoredEvent& event : range) {
    (void)event;
    if (++seen < 10) this->append("order-1", {"more"});
  }
  EXPECT_EQ(seen, 2);
}

TYPED_TEST_P(EventStoreContract, ReadsGivenSequences) {
  for (int i = 0; i < 20; ++i) this->append("order-" + std::to_string(i % 3), {"a"});
  const std::vector<GlobalSequence> wanted{GlobalSequence{12}, GlobalSequence{3},
                                           GlobalSequence{4},  GlobalSequence{12},
                                           GlobalSequence{99}, GlobalSequence{-1}};

  EXPECT_THAT(lines(this->store->read_at(wanted)),
              ElementsAre("3 order-2@1 a", "4 order-0@2 a", "12 order-2@4 a"));
  EXPECT_THAT(lines(this->store->read_at({})), IsEmpty());
}

TYPED_TEST_P(EventStoreContract, ReadsThousandsOfGivenSequences) {
  const std::string payload(1000, 'x');
  std::vector<NewEvent> events(3000, NewEvent{"a", 1, false, payload});
  this->append("order-1", ExpectedVersion::any(), events);
  std::vector<GlobalSequence> wanted;
  for (int i = 1; i <= 3000; ++i) {
    if (i % 10 != 0) wanted.emplace_back(i);
  }
  std::size_t at = 0;
  for (const StoredEvent& event : this->store->read_at(wanted)) {
    ASSERT_EQ(event.sequence, wanted[at++]);
  }
  EXPECT_EQ(at, wanted.size());
}

TYPED_TEST_P(EventStoreContract, KeepsPayloadsOfEverySize) {
  const std::string large(10 * 1024 * 1024, '\x01');
  const std::string zeros(3, '\0');
  this->append("order-1", ExpectedVersion::none(),
               {{"empty", 1, false, ""}, {"large", 1, false, large}, {"zeros", 1, false, zeros}});

  std::vector<std::string> payloads;
  for (const StoredEvent& event : this->store->read_all()) payloads.emplace_back(event.payload);
  ASSERT_THAT(payloads, SizeIs(3));
  EXPECT_EQ(payloads[0], "");
  EXPECT_TRUE(payloads[1] == large);
  EXPECT_EQ(payloads[2], zeros);
}

TYPED_TEST_P(EventStoreContract, RefusesWhatCannotBeAnEvent) {
  for (const NewEvent& event : {NewEvent{"", 1, false, "{}"}, NewEvent{"a b", 1, false, "{}"},
                                NewEvent{".a", 1, false, "{}"}, NewEvent{"a", 0, false, "{}"},
                                NewEvent{"a", -1, false, "{}"}, NewEvent{"a\n", 1, false, "{}"}}) {
    EXPECT_THROW(this->append("order-1", ExpectedVersion::any(), {event}), UsageError)
        << event.type;
  }
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{0});
}

TYPED_TEST_P(EventStoreContract, KeepsTheContextOfAnAppend) {
  const Context context{.correlation_id = "request-7",
                        .causation_id = make_uuid(),
                        .actor = "jane",
                        .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                        .headers = {{"tenant", "acme"}, {"note", "ünï\"quoted\""}}};
  {
    const ContextScope scope{context};
    this->append("order-1", {"a", "b"});
  }
  this->append("order-1", {"c"});

  std::vector<Context> contexts;
  for (const StoredEvent& event : this->store->read_all()) contexts.push_back(event.context());
  ASSERT_THAT(contexts, SizeIs(3));
  EXPECT_EQ(contexts[0], context);
  EXPECT_EQ(contexts[1], context);
  EXPECT_EQ(contexts[2].actor, "");
}

TYPED_TEST_P(EventStoreContract, CorrelatesWhatIsAppendedTogether) {
  this->append("order-1", {"a", "b"});
  this->append("order-1", {"c"});

  std::vector<std::string> ids;
  std::vector<std::string> correlations;
  for (const StoredEvent& event : this->store->read_all()) {
    ids.push_back(event.id.to_string());
    correlations.push_back(event.correlation_id());
  }
  EXPECT_THAT(correlations, ElementsAre(ids[0], ids[0], ids[2]));
}

TYPED_TEST_P(EventStoreContract, RemembersTheLastPublishedVersion) {
  const NewEvent published{"p", 1, true, "{}"};
  const NewEvent kept{"l", 1, false, "{}"};
  this->append("order-1", ExpectedVersion::any(), {kept, published, kept});
  this->append("order-1", ExpectedVersion::any(), {kept, published});
  this->append("order-1", ExpectedVersion::any(), {published});
  this->append("order-2", ExpectedVersion::any(), {published});

  std::vector<std::int64_t> before;
  for (const StoredEvent& event : this->store->read_all()) {
    before.push_back(event.published_before.value());
  }
  EXPECT_THAT(before, ElementsAre(0, 0, 2, 2, 2, 5, 0));
}

TYPED_TEST_P(EventStoreContract, RepeatsAnAppendUnderItsId) {
  const NewEvent event{"a", 1, false, "{}"};
  const AppendResult first = this->append("order-1", ExpectedVersion::none(), {event}, "cmd-1");
  this->append("order-1", {"b"});
  const AppendResult again = this->append("order-1", ExpectedVersion::none(), {event}, "cmd-1");

  EXPECT_FALSE(first.repeated);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.first, first.first);
  EXPECT_EQ(again.last, first.last);
  EXPECT_EQ(again.versions, first.versions);
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{2});
  EXPECT_THROW(this->append("order-2", ExpectedVersion::none(), {event}, "cmd-1"), UsageError);
  EXPECT_THROW(this->append("order-1", ExpectedVersion::any(), {event, event}, "cmd-1"),
               UsageError);
  EXPECT_THROW(this->append("order-1", ExpectedVersion::any(), {event}, std::string(129, 'x')),
               UsageError);
}

TYPED_TEST_P(EventStoreContract, ForgetsTheIdOfAnAppendThatFailed) {
  const NewEvent event{"a", 1, false, "{}"};
  EXPECT_THROW(
      this->append("order-1", ExpectedVersion::exactly(StreamVersion{5}), {event}, "cmd-1"),
      ConcurrencyConflict);
  EXPECT_FALSE(this->append("order-1", ExpectedVersion::none(), {event}, "cmd-1").repeated);
}

TYPED_TEST_P(EventStoreContract, CommitsATransactionWholeOrNotAtAll) {
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend append{order, ExpectedVersion::any(), {&event, 1}};

  this->store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&append, 1}});
    transaction.append({.streams = {&append, 1}});
    EXPECT_THAT(lines(transaction.read_stream(order)), SizeIs(2));
  });
  EXPECT_THAT(lines(this->store->read_stream(order)), SizeIs(2));

  EXPECT_THROW(this->store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&append, 1}});
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_THAT(lines(this->store->read_stream(order)), SizeIs(2));
  this->append("order-1", {"b"});
  EXPECT_THAT(lines(this->store->read_stream(order)),
              ElementsAre("1 order-1@1 a", "2 order-1@2 a", "3 order-1@3 b"));
}

TYPED_TEST_P(EventStoreContract, UndoesAnAppendThatFailedInATransactionThatGoesOn) {
  this->append("stock-1", {"s"});
  const StreamId order = StreamId::parse("order-1");
  const StreamId stock = StreamId::parse("stock-1");
  const NewEvent event{"a", 1, false, "{}"};
  const std::vector<StreamAppend> lost{{order, ExpectedVersion::none(), {&event, 1}},
                                       {stock, ExpectedVersion::none(), {&event, 1}}};

  this->store->transact([&](Transaction& transaction) {
    EXPECT_THROW(transaction.append({.streams = lost}), ConcurrencyConflict);
    EXPECT_THAT(lines(transaction.read_stream(order)), IsEmpty());
    transaction.append({.streams = {&lost[0], 1}});
  });

  EXPECT_THAT(lines(this->store->read_all()), ElementsAre("1 stock-1@1 s", "2 order-1@1 a"));
}

TYPED_TEST_P(EventStoreContract, RefusesToWriteInsideItsOwnTransaction) {
  EXPECT_THROW(this->store->transact([&](Transaction&) { this->append("order-1", {"a"}); }),
               UsageError);
  EXPECT_THROW(
      this->store->transact([&](Transaction&) { this->store->transact([](Transaction&) {}); }),
      UsageError);
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{0});
  EXPECT_NO_THROW(this->append("order-1", {"a"}));
}

TYPED_TEST_P(EventStoreContract, NotifiesAfterCommitsAndOnlyThen) {
  std::vector<std::string> heard;
  const Subscription listening = this->store->on_commit([&](const CommitNotice& notice) {
    for (const StoredEvent& event : notice.events) {
      heard.push_back(event.describe() + ' ' + std::string{event.payload});
    }
    EXPECT_EQ(this->store->last_sequence(), notice.events.back().sequence);
  });
  const Subscription throwing =
      this->store->on_commit([](const CommitNotice&) { throw std::runtime_error{"no"}; });

  this->append("order-1", ExpectedVersion::none(), {{"a", 1, false, R"({"n":1})"}});
  EXPECT_THROW(this->append("order-1", ExpectedVersion::none(), {{"a", 1, false, "{}"}}),
               ConcurrencyConflict);
  this->store->transact([&](Transaction& transaction) {
    const StreamId order = StreamId::parse("order-2");
    const std::string payload = R"({"n":2})";
    const NewEvent event{"b", 1, false, payload};
    const StreamAppend append{order, ExpectedVersion::any(), {&event, 1}};
    transaction.append({.streams = {&append, 1}});
    EXPECT_THAT(heard, SizeIs(1));
  });

  EXPECT_THAT(heard, ElementsAre(R"(event 1 (a v1, version 1 of 'order-1') {"n":1})",
                                 R"(event 2 (b v1, version 1 of 'order-2') {"n":2})"));
}

class Recorder : public TransactionParticipant {
 public:
  explicit Recorder(std::string detail = "1") : detail_{std::move(detail)} {}
  std::string_view name() const noexcept override { return "recorder"; }
  std::string_view detail() const noexcept override { return detail_; }
  bool runs_user_code() const noexcept override { return false; }
  void on_append(Transaction&, std::span<const StoredEvent> events) override {
    for (const StoredEvent& event : events) {
      if (event.type() == "refused") throw std::domain_error{"refused"};
      seen.push_back(event.sequence.value());
    }
  }
  std::vector<std::int64_t> seen;

 private:
  std::string detail_;
};

TYPED_TEST_P(EventStoreContract, ShowsAParticipantEveryAppend) {
  Recorder recorder;
  this->store->attach(recorder);
  this->append("order-1", {"a", "b"});
  EXPECT_THROW(this->append("order-1", {"refused"}), std::domain_error);
  this->append("order-1", {"c"});

  EXPECT_THAT(recorder.seen, ElementsAre(1, 2, 3));
  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{3});
}

TYPED_TEST_P(EventStoreContract, RefusesAppendsWithoutARequiredParticipant) {
  Recorder recorder;
  this->store->attach(recorder);
  this->store->detach(recorder);
  EXPECT_THROW(this->append("order-1", {"a"}), ParticipantMissing);

  Recorder other{"2"};
  EXPECT_THROW(this->store->attach(other), UsageError);
  EXPECT_THROW(this->append("order-1", {"a"}), ParticipantMissing);

  this->store->forget_participant("recorder");
  EXPECT_NO_THROW(this->append("order-1", {"a"}));
}

TYPED_TEST_P(EventStoreContract, KeepsTheNewestSnapshot) {
  const StreamId order = StreamId::parse("order-1");
  this->append("order-1", {"a", "b", "c"});
  const auto find = [&](std::int64_t version, std::int64_t sequence) {
    const auto found =
        this->store->find_snapshot(order, StreamVersion{version}, GlobalSequence{sequence});
    return found ? found->payload : "none";
  };

  EXPECT_EQ(find(9, 9), "none");
  this->store->save_snapshot(order, {StreamVersion{2}, GlobalSequence{2}, 1, "two"});
  this->store->save_snapshot(order, {StreamVersion{1}, GlobalSequence{1}, 1, "one"});
  EXPECT_EQ(find(9, 9), "two");
  EXPECT_EQ(find(1, 9), "none");
  EXPECT_EQ(find(9, 1), "none");
  this->store->drop_snapshot(order);
  EXPECT_EQ(find(9, 9), "none");
}

TYPED_TEST_P(EventStoreContract, SeesEveryConflictOfManyThreads) {
  constexpr int threads = 8;
  constexpr int each = 40;
  std::atomic<int> conflicts{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      Repository<test::Order> orders{*this->store};
      const auto id = Id<test::Order>::from(std::to_string(t % 2));
      for (int i = 0; i < each; ++i) {
        retry({.attempts = 10'000}, [&] {
          auto order = orders.find(id);
          if (!order) order.emplace(id);
          order->note("n");
          try {
            orders.save(*order);
          } catch (const ConcurrencyConflict&) {
            ++conflicts;
            throw;
          }
        });
      }
    });
  }
  workers.clear();

  EXPECT_EQ(this->store->last_sequence(), GlobalSequence{threads * each});
  for (const std::string key : {"0", "1"}) {
    const auto order = Repository<test::Order>{*this->store}.load(Id<test::Order>::from(key));
    EXPECT_EQ(order.state().notes, threads * each / 2);
  }
}

TYPED_TEST_P(EventStoreContract, CountsWhatItCommitsAndWhatFails) {
  this->append("order-1", {"a", "b"});
  this->append("order-1", {"c"});
  EXPECT_THROW(this->append("order-1", ExpectedVersion::none(), {{"d", 1, false, "{}"}}),
               ConcurrencyConflict);

  EXPECT_THAT(
      this->metrics.counts(),
      UnorderedElementsAre(Pair("stela_store_commits_total", 2),
                           Pair("stela_store_writes_total", 2), Pair("stela_store_events_total", 3),
                           Pair("stela_store_failed_writes_total{error=concurrency_conflict}", 1)));
}

REGISTER_TYPED_TEST_SUITE_P(
    EventStoreContract, ReturnsWhatWasAppended, NumbersStreamsAndTheStoreWithoutGaps,
    HonoursEachExpectedVersion, AppendsToSeveralStreamsOrToNone, ChecksAStreamThatGetsNoEvents,
    ReadsAStreamWithinBounds, ReadsTheStoreThroughFilters, ReadsManyPagesInOrder,
    ReadsUpToWhatWasThereWhenItBegan, ReadsGivenSequences, ReadsThousandsOfGivenSequences,
    KeepsPayloadsOfEverySize, RefusesWhatCannotBeAnEvent, KeepsTheContextOfAnAppend,
    CorrelatesWhatIsAppendedTogether, RemembersTheLastPublishedVersion, RepeatsAnAppendUnderItsId,
    ForgetsTheIdOfAnAppendThatFailed, CommitsATransactionWholeOrNotAtAll,
    UndoesAnAppendThatFailedInATransactionThatGoesOn, RefusesToWriteInsideItsOwnTransaction,
    NotifiesAfterCommitsAndOnlyThen, ShowsAParticipantEveryAppend,
    RefusesAppendsWithoutARequiredParticipant, KeepsTheNewestSnapshot,
    SeesEveryConflictOfManyThreads, CountsWhatItCommitsAndWhatFails);

using Subjects = ::testing::Types<InMemory, SqliteInMemory, SqliteFile>;
INSTANTIATE_TYPED_TEST_SUITE_P(Stores, EventStoreContract, Subjects);

}  // namespace
}  // namespace stela
