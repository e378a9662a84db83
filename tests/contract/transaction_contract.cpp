// What every event store does for transactions, for those who take part, and for those who listen.
#include "contract/event_store.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace stela::transaction_contract {
namespace {

using test::EventStoreContract;
using test::lines;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_P(EventStoreContract, CommitsATransactionWholeOrNotAtAll) {
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};

  store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&one, 1}});
    transaction.append({.streams = {&one, 1}});
    EXPECT_THAT(lines(transaction.read_stream(order)), SizeIs(2));
  });
  EXPECT_THAT(lines(store->read_stream(order)), SizeIs(2));

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&one, 1}});
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_THAT(lines(store->read_stream(order)), SizeIs(2));
  append("order-1", {"b"});
  EXPECT_THAT(lines(store->read_stream(order)),
              ElementsAre("1 order-1@1 a", "2 order-1@2 a", "3 order-1@3 b"));
}

TEST_P(EventStoreContract, SavesAndDropsSnapshotsInTheOrderOfTheTransaction) {
  append("order-1", {"a"});
  const StreamId order = StreamId::parse("order-1");
  const StoredSnapshot snapshot{StreamVersion{1}, GlobalSequence{1}, 1, "{}"};
  const auto has_snapshot = [&] {
    return store->find_snapshot(order, StreamVersion::max(), GlobalSequence::max()).has_value();
  };
  store->transact([&](Transaction& transaction) {
    transaction.save_snapshot(order, snapshot);
    transaction.drop_snapshot(order);
  });
  EXPECT_FALSE(has_snapshot());

  store->transact([&](Transaction& transaction) {
    transaction.drop_snapshot(order);
    transaction.save_snapshot(order, snapshot);
  });
  EXPECT_TRUE(has_snapshot());

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    transaction.drop_snapshot(order);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_TRUE(has_snapshot());
}

TEST_P(EventStoreContract, IsNotHeldUpByARetryInsideATransaction) {
  int calls = 0;
  const auto fail_in_retry = [&](EventLog&) {
    retry({.max_attempts = 3, .wait = [](std::chrono::microseconds) {}}, [&] {
      ++calls;
      throw StoreBusy{"busy"};
    });
  };
  EXPECT_THROW(store->transact(fail_in_retry), StoreBusy);
  EXPECT_EQ(calls, 1);

  store->transact([&](Transaction& transaction) {
    EXPECT_THROW(transaction.transact(fail_in_retry), StoreBusy);
    EXPECT_THROW(fail_in_retry(transaction), StoreBusy);
  });
  EXPECT_EQ(calls, 3);

  EXPECT_THROW(fail_in_retry(*store), StoreBusy);
  EXPECT_EQ(calls, 6);
}

TEST_P(EventStoreContract, UndoesAFailedAppendInATransactionThatContinues) {
  append("stock-1", {"s"});
  const StreamId order = StreamId::parse("order-1");
  const StreamId stock = StreamId::parse("stock-1");
  const NewEvent event{"a", 1, false, "{}"};
  const std::vector<StreamAppend> lost{{order, ExpectedVersion::none(), {&event, 1}},
                                       {stock, ExpectedVersion::none(), {&event, 1}}};

  store->transact([&](Transaction& transaction) {
    EXPECT_THROW(transaction.append({.streams = lost}), ConcurrencyConflict);
    EXPECT_THAT(lines(transaction.read_stream(order)), IsEmpty());
    transaction.append({.streams = {&lost[0], 1}});
  });

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 stock-1@1 s", "2 order-1@1 a"));
}

TEST_P(EventStoreContract, RefusesToWriteInsideItsOwnTransaction) {
  EXPECT_THROW(store->transact([&](Transaction&) { append("order-1", {"a"}); }), UsageError);
  EXPECT_THROW(store->transact([&](Transaction&) { store->transact([](Transaction&) {}); }),
               UsageError);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{0});
  EXPECT_NO_THROW(append("order-1", {"a"}));
}

TEST_P(EventStoreContract, NotifiesAfterCommitsAndOnlyThen) {
  std::vector<std::string> heard;
  const Subscription listening = store->on_commit([&](const CommitNotice& notice) {
    for (const StoredEvent& event : notice.events) {
      heard.push_back(event.describe() + ' ' + std::string{event.payload});
    }
    EXPECT_EQ(store->last_sequence(), notice.events.back().sequence);
  });
  const Subscription throwing =
      store->on_commit([](const CommitNotice&) { throw std::runtime_error{"no"}; });

  append("order-1", ExpectedVersion::none(), {{"a", 1, false, R"({"n":1})"}});
  EXPECT_THROW(append("order-1", ExpectedVersion::none(), {{"a", 1, false, "{}"}}),
               ConcurrencyConflict);
  store->transact([&](Transaction& transaction) {
    const StreamId order = StreamId::parse("order-2");
    const std::string payload = R"({"n":2})";
    const NewEvent event{"b", 1, false, payload};
    const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};
    transaction.append({.streams = {&one, 1}});
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

TEST_P(EventStoreContract, ShowsAParticipantEveryAppend) {
  Recorder recorder;
  store->attach(recorder);
  append("order-1", {"a", "b"});
  EXPECT_THROW(append("order-1", {"refused"}), std::domain_error);
  append("order-1", {"c"});

  EXPECT_THAT(recorder.seen, ElementsAre(1, 2, 3));
  EXPECT_EQ(store->last_sequence(), GlobalSequence{3});
}

TEST_P(EventStoreContract, RefusesAppendsWithoutARequiredParticipant) {
  Recorder recorder;
  store->attach(recorder);
  store->detach(recorder);
  EXPECT_THROW(append("order-1", {"a"}), ParticipantMissing);

  Recorder other{"2"};
  EXPECT_THROW(store->attach(other), UsageError);
  EXPECT_THROW(append("order-1", {"a"}), ParticipantMissing);

  store->forget_participant("recorder");
  EXPECT_NO_THROW(append("order-1", {"a"}));
}

TEST_P(EventStoreContract, RefusesToChangeWhoTakesPartFromInsideATransaction) {
  Recorder recorder;
  Recorder other;
  store->attach(recorder);
  store->transact([&](Transaction&) {
    EXPECT_THROW(store->attach(other), UsageError);
    EXPECT_THROW(store->forget_participant("recorder"), UsageError);
  });
  append("order-1", {"a"});

  EXPECT_THAT(recorder.seen, ElementsAre(1));
}

TEST_P(EventStoreContract, LetsAParticipantLeaveInsideATransaction) {
  Recorder recorder;
  store->attach(recorder);
  store->transact([&](Transaction&) { store->detach(recorder); });

  EXPECT_THROW(append("order-1", {"a"}), ParticipantMissing);
  EXPECT_THAT(recorder.seen, IsEmpty());
}

TEST_P(EventStoreContract, AttachesOneParticipantOfAName) {
  Recorder first;
  Recorder second;
  store->attach(first);

  EXPECT_THAT(test::message_of<UsageError>([&] { store->attach(second); }),
              HasSubstr("'recorder' takes part in the appends of this store already"));
  EXPECT_THROW(store->attach(first), UsageError);
  append("order-1", {"a"});

  EXPECT_THAT(first.seen, ElementsAre(1));
  EXPECT_THAT(second.seen, IsEmpty());
}

TEST_P(EventStoreContract, AcceptsAParticipantThatKnowsTheRecordedDetail) {
  class Versatile final : public Recorder {
   public:
    using Recorder::Recorder;
    bool accepts(std::string_view recorded) const noexcept override {
      return recorded == "1" || recorded == "2";
    }
  };
  Recorder first{"1"};
  Versatile second{"2"};
  store->attach(first);
  store->detach(first);
  store->attach(second);
  append("order-1", {"a"});

  EXPECT_THAT(second.seen, ElementsAre(1));
}

TEST_P(EventStoreContract, SeesEveryConflictOfManyThreads) {
  constexpr int threads = 8;
  constexpr int each = 40;
  std::atomic<int> conflicts{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      Repository<test::Order> orders{*store};
      const auto id = Id<test::Order>::from(std::to_string(t % 2));
      for (int i = 0; i < each; ++i) {
        retry({.max_attempts = 10'000}, [&] {
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

  EXPECT_EQ(store->last_sequence(), GlobalSequence{threads * each});
  for (const std::string key : {"0", "1"}) {
    const auto order = Repository<test::Order>{*store}.load(Id<test::Order>::from(key));
    EXPECT_EQ(order.state().notes, threads * each / 2);
  }
}

TEST_P(EventStoreContract, CountsCommitsAndFailures) {
  append("order-1", {"a", "b"});
  append("order-1", {"c"});
  EXPECT_THROW(append("order-1", ExpectedVersion::none(), {{"d", 1, false, "{}"}}),
               ConcurrencyConflict);

  EXPECT_THAT(
      metrics.counts(),
      UnorderedElementsAre(Pair("stela_store_commits_total", 2),
                           Pair("stela_store_writes_total", 2), Pair("stela_store_events_total", 3),
                           Pair("stela_store_failed_writes_total{error=concurrency_conflict}", 1)));
}

}  // namespace
}  // namespace stela::transaction_contract
