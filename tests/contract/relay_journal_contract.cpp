// What the outbox's tables tell of the past on every engine: since when, what changed, how it went.
#include "contract/relay_tables.hpp"

#include <stela/eventstore/detail/journal.hpp>
#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stela::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* lost = "stopped by nobody: broker_lost: gone";

class History {
 public:
  explicit History(Store& store) : store_{store} {}

  /// "stopped by nobody: gone", the newest first.
  std::vector<std::string> changes() const {
    std::vector<std::string> all;
    for (const JournalEntry& one : Journal{store_}.entries()) {
      all.push_back(one.what + " by " + (one.who.empty() ? "nobody" : one.who) + ": " + one.detail);
    }
    return all;
  }
  PartitionStatus partition() const { return OutboxOperations{store_}.status().partitions.front(); }
  std::vector<std::int64_t> values(const std::string& name, Timestamp now) const {
    std::vector<std::int64_t> all;
    for (const HistorySeries& one : Journal{store_}.history(now - 24h * 100, now)) {
      if (one.name != name) continue;
      for (const HistoryPoint& point : one.points) all.push_back(point.value);
    }
    return all;
  }

 private:
  Store& store_;
};

}  // namespace

TEST_P(RelayJournalContract, TellsSinceWhenAPartitionIsStopped) {
  const History history{store_of(*subject)};
  append({1});
  acquire();
  const Timestamp stopped_at = subject->clock.now();
  EXPECT_TRUE(store->stop(leases[all], StopReason::broker_lost, "gone"));
  subject->clock.advance(1min);
  EXPECT_EQ(history.partition().stopped_at, stopped_at);
  EXPECT_THAT(history.changes(), ElementsAre(lost));

  EXPECT_TRUE(store->continue_lost(leases[all]));

  EXPECT_EQ(history.partition().stopped_at, std::nullopt);
  EXPECT_THAT(history.changes(),
              ElementsAre("resumed by nobody: the broker has its messages again", lost));
}

TEST_P(RelayJournalContract, TellsWhatAnOperatorChanged) {
  const History history{store_of(*subject)};
  acquire();
  store->stop(leases[all], StopReason::broker_lost, "gone");

  subject->operations().adopt(all, {}, "ann");
  subject->operations().resize(2, "bob");

  EXPECT_THAT(history.changes(), ElementsAre("resized by bob: 1 to 2 partitions from 1 on",
                                             "adopted by ann: stopped by broker_lost", lost));
}

TEST_P(RelayJournalContract, TakesWhatAnOperatorDecidedElsewhere) {
  Journal journal{store_of(*subject)};
  journal.note({.part = "console",
                .subject = "job 1",
                .what = "confirmed",
                .who = "ann",
                .detail = "retry"});
  EXPECT_THROW(journal.note({.part = "console", .what = "confirmed"}), UsageError);
  EXPECT_THAT(History{store_of(*subject)}.changes(), ElementsAre("confirmed by ann: retry"));
}

TEST_P(RelayJournalContract, TellsSinceWhenWhatWasLostIsNotSentAgain) {
  struct EmptyBroker final : BrokerContents {
    bool read(PartitionId, Take take) override {
      take({.broker_sequence = 9});
      return false;
    }
  } broker;
  const History history{store_of(*subject)};
  acquire();
  ASSERT_TRUE(store->advance(leases[all], {.broker_sequence = 5}, false));
  store->stop(leases[all], StopReason::broker_lost, "gone");
  EXPECT_EQ(history.partition().uncompared_since, std::nullopt);

  subject->operations().adopt(all, {}, "ann");

  EXPECT_EQ(history.partition().uncompared_since, subject->clock.now());
  EXPECT_EQ(history.partition().broker_first, 1u);
  OutboxOperations operations{store_of(*subject)};
  operations.compare(broker, GlobalSequence{1}, Mode::dry_run);
  EXPECT_NE(history.partition().uncompared_since, std::nullopt);

  operations.compare(broker, GlobalSequence{1});

  EXPECT_EQ(history.partition().uncompared_since, std::nullopt);
  EXPECT_EQ(history.partition().broker_first, 9u);
}

TEST_P(RelayJournalContract, TellsWhoTookAPartitionFromWhom) {
  const History history{store_of(*subject)};
  acquire(all, "a");
  store->release(leases[all]);
  acquire(all, "b");
  EXPECT_THAT(history.changes(), IsEmpty());

  subject->clock.advance(ttl + 1s);
  acquire(all, "c");

  EXPECT_THAT(history.changes(), ElementsAre("taken over by nobody: from 'b' to 'c'"));
  EXPECT_EQ(OutboxOperations{store_of(*subject)}.status().takeovers, 1);
}

TEST_P(RelayJournalContract, TellsSinceWhenAPartitionBacksOff) {
  const History history{store_of(*subject)};
  append({1});
  acquire();
  const Timestamp since = subject->clock.now();
  store->note(leases[all], {.attempts = 1, .backoff = 1s, .error = "no answer"});
  subject->clock.advance(5s);
  store->note(
      leases[all],
      {.attempts = 2, .backoff = 2s, .error = "no answer", .failure = FailureClass::no_answer});
  EXPECT_EQ(history.partition().backing_since, since);
  EXPECT_EQ(history.partition().failure, FailureClass::no_answer);

  store->note(leases[all], {});

  EXPECT_EQ(history.partition().failure, std::nullopt);
  EXPECT_EQ(history.partition().backing_since, std::nullopt);
  EXPECT_EQ(OutboxOperations{store_of(*subject)}.status().failures, 2);
}

TEST_P(RelayJournalContract, TellsTheOwnerThatAPartitionIsToTryAtOnce) {
  append({1});
  acquire();
  OutboxOperations operations{store_of(*subject), {.who = "ann"}};
  EXPECT_FALSE(operations.try_now(all)) << "it isn't backing off";
  store->note(leases[all], {.attempts = 1, .backoff = 1min, .error = "full"});
  EXPECT_FALSE(store->look().partitions[0].is_to_retry);

  EXPECT_TRUE(operations.try_now(all));

  EXPECT_TRUE(store->look().partitions[0].is_to_retry);
  EXPECT_EQ(operations.status().partitions.front().next_attempt_at, std::nullopt);
  const OperatorAction action = operations.actions().front();
  EXPECT_EQ(action.who + ": " + action.what + ' ' + action.detail, "ann: retry partition all");
  store->note(leases[all], {.attempts = 2, .backoff = 1min, .error = "full"});
  EXPECT_FALSE(store->look().partitions[0].is_to_retry) << "it has tried";
}

TEST_P(RelayJournalContract, TellsSinceWhenAWorkerSeesItsBrokerSo) {
  const History history{store_of(*subject)};
  const auto beat = [&](BrokerState state, bool is_cut_off) {
    store->heartbeat("w1", ttl, {{.state = state, .detail = "nats://one"}, is_cut_off});
  };
  const auto since = [&] {
    return OutboxOperations{store_of(*subject)}.status().workers.front().broker_since;
  };
  beat(BrokerState::connected, false);
  subject->clock.advance(1s);
  const Timestamp down_at = subject->clock.now();
  beat(BrokerState::down, false);
  subject->clock.advance(1s);
  beat(BrokerState::down, true);
  EXPECT_EQ(since(), down_at);
  EXPECT_EQ(history.changes().size(), 1U);
  EXPECT_THAT(history.changes().front(), ::testing::StartsWith("cut off by nobody: "));

  beat(BrokerState::connected, false);

  EXPECT_EQ(since(), subject->clock.now());
  EXPECT_THAT(history.changes().front(), ::testing::StartsWith("reaches its broker by nobody: "));
}

TEST_P(RelayJournalContract, SamplesAMinuteOnce) {
  const History history{store_of(*subject)};
  const auto beat = [&] { store->heartbeat("w1", ttl, {}); };
  beat();
  append({1, 2});
  beat();
  subject->clock.advance(1min);
  beat();
  // Another process finds that it is done.
  subject->port()->heartbeat("w2", ttl, {});
  const Timestamp now = subject->clock.now();

  EXPECT_THAT(history.values("outbox.pending", now), ElementsAre(0, 2));
  EXPECT_THAT(history.values("outbox.workers", now), ElementsAre(1, 1));
  EXPECT_THAT(history.values("store.head_total", now), ElementsAre(0, 2));
}

TEST_P(RelayJournalContract, KeepsAWeekByTheMinuteAndAQuarterByTheHour) {
  const History history{store_of(*subject)};
  const auto beat_after = [&](std::chrono::minutes rest) {
    subject->clock.advance(rest);
    store->heartbeat("w1", ttl, {});
    return history.values("outbox.pending", subject->clock.now()).size();
  };
  // The clock begins at a full hour.
  EXPECT_EQ(beat_after(0min), 1U);
  EXPECT_EQ(beat_after(1min), 2U);
  EXPECT_EQ(beat_after(59min), 3U);
  EXPECT_EQ(beat_after(24h * 8), 3U) << "of the first ones the full hours, and this";
  EXPECT_EQ(beat_after(24h * 91), 1U);
}

TEST_P(RelayJournalContract, ForgetsChangesAfterNinetyDays) {
  const History history{store_of(*subject)};
  subject->operations().resize(2, "ann");
  subject->clock.advance(24h * 91);

  subject->operations().resize(3, "bob");

  EXPECT_THAT(history.changes(), ElementsAre("resized by bob: 2 to 3 partitions from 1 on"));
}

TEST_P(RelayJournalContract, CountsWhatRetiredPartitionsPublished) {
  append({1, 2});
  acquire();
  publish(1);
  publish(2);
  OutboxOperations operations{store_of(*subject)};
  operations.resize(2);
  store->release(leases[all]);
  EXPECT_EQ(operations.sync(true).retired.size(), 1U);

  EXPECT_EQ(operations.status().published, 2);
}

}  // namespace stela::test
