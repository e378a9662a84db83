// Acting on a set of parked messages, on every engine: groups of failures, and plans to retry.
#include "contract/relay_tables.hpp"
#include "outbox_sql/failures.hpp"
#include "outbox_sql/inspection.hpp"
#include "support/soundness.hpp"

#include <stela/outbox/care.hpp>
#include <stela/outbox/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Reason = relay::ParkedMessage::Reason;

relay::Advance parking(std::int64_t sequence, Reason reason, const std::string& error,
                       std::int64_t redelivery = 0) {
  relay::Advance advance;
  advance.parked.push_back({GlobalSequence{sequence}, redelivery, reason, 1, error});
  return advance;
}

TEST_P(RelayJournalContract, GroupsFailuresThatAreAlike) {
  append({1, 2, 3, 4});
  acquire();
  const auto park_for = [&](std::int64_t sequence, const std::string& error) {
    store->advance(leases[all], parking(sequence, Reason::refused, error), false);
  };
  park_for(1, "message 1 of 'thing-1' is too large: 1.3 MiB\nmore");
  subject->clock.advance(1min);
  park_for(2, "message 2 of 'thing-2' is too large: 27.9 MiB");
  park_for(3, "it isn't allowed");
  park(4, 0, Reason::behind);

  const auto groups = OutboxOperations{store_of(*subject)}.groups();

  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].streams, 2);
  EXPECT_EQ(groups[0].last_at - groups[0].first_at, 1min);
  EXPECT_EQ(groups[0].sample.type, "thing.happened");
  EXPECT_THAT(groups[0].sample.last_error, HasSubstr("too large"));
  EXPECT_EQ(groups[1].sample.last_error, "it isn't allowed");
  EXPECT_NE(groups[0].group, groups[1].group);
}

TEST_P(RelayJournalContract, KeepsTheClassOfAFailure) {
  append({1, 2, 3, 3});
  acquire();
  const auto park_as = [&](std::int64_t sequence, FailureClass failure, const std::string& error) {
    relay::Advance advance = parking(sequence, Reason::refused, error);
    advance.parked.front().failure = failure;
    store->advance(leases[all], advance, false);
  };
  park_as(1, FailureClass::too_large, "its payload of 1.3 MiB");
  park_as(2, FailureClass::too_large, "its payload of 900 KiB, and more");
  park_as(3, FailureClass::rejected, "it isn't allowed");
  park(4, 0, Reason::behind);
  OutboxOperations operations{store_of(*subject)};

  EXPECT_EQ(operations.list({.state = MessageState::parked}).front().failure,
            FailureClass::too_large);
  EXPECT_EQ(operations.show(GlobalSequence{3})->failure, FailureClass::rejected);
  EXPECT_EQ(operations.show(GlobalSequence{4})->failure, std::nullopt);
  const auto groups = operations.groups();
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].streams, 2) << "all that is too large is one group";
  EXPECT_EQ(groups[0].sample.failure, FailureClass::too_large);
}

TEST_P(RelayJournalContract, RetriesAGroup) {
  append({1, 2, 3, 1});
  acquire();
  store->advance(leases[all], parking(1, Reason::refused, "too large: 1"), false);
  store->advance(leases[all], parking(2, Reason::refused, "too large: 2"), false);
  store->advance(leases[all], parking(3, Reason::refused, "forbidden"), false);
  park(4, 0, Reason::behind);
  OutboxOperations operations{store_of(*subject)};
  const std::string group = operations.groups().front().group;

  const AppliedPlan applied =
      operations.apply(operations.plan_retry({.all = true, .group = group}));

  EXPECT_EQ(applied.streams, 2);
  EXPECT_EQ(applied.messages, 3);
  EXPECT_THAT(operations.groups(), SizeIs(1));
}

TEST_P(RelayJournalContract, DiscardsTheHeadsOfAGroupAlone) {
  append({1, 1});
  acquire();
  store->advance(leases[all], parking(1, Reason::refused, "too large: 1"), false);
  park(2, 0, Reason::behind);
  OutboxOperations operations{store_of(*subject)};

  const Affected gone =
      operations.discard({.all = true, .group = operations.groups().front().group});

  EXPECT_EQ(gone.messages, 1);
  EXPECT_EQ(gone.followers, 1);
}

TEST_P(RelayJournalContract, DiscardsNothingButWhatWasPlanned) {
  append({1, 2, 3, 4});
  acquire();
  for (const std::int64_t sequence : {1, 2, 3}) park(sequence);
  OutboxOperations operations{store_of(*subject)};
  const DiscardPlan plan = operations.plan_discard({.all = true});
  EXPECT_EQ(plan.affected.messages, 3);

  // One was retried and is parked again, another is gone, and a fourth has come.
  operations.retry({.sequences = {GlobalSequence{1}}});
  subject->clock.advance(1min);
  store->advance(leases[all], parking(1, Reason::refused, "again", 1), false);
  operations.discard({.sequences = {GlobalSequence{2}}});
  park(4);
  const Affected affected = operations.apply(plan);

  EXPECT_EQ(affected.messages, 1);
  EXPECT_EQ(affected.streams, 1) << "two were left alone";
  EXPECT_EQ(affected.changed, 2);
  EXPECT_EQ(operations.show(GlobalSequence{1})->state, MessageState::parked);
  EXPECT_EQ(operations.show(GlobalSequence{3})->state, MessageState::discarded);
  EXPECT_EQ(operations.show(GlobalSequence{4})->state, MessageState::parked);
  EXPECT_EQ(operations.actions({}).front().detail, "1 message, 3");
}

TEST_P(RelayJournalContract, AppliesAPlanToTheWholeRun) {
  append({1, 1, 1, 1});
  acquire();
  park(1);
  park(2, 0, Reason::behind);
  OutboxOperations operations{store_of(*subject)};
  const RetryPlan plan = operations.plan_retry({.all = true});
  ASSERT_THAT(plan.runs, SizeIs(1));
  EXPECT_EQ(plan.runs[0].messages(), 2);
  EXPECT_EQ(plan.runs[0].stream, "thing-1");
  park(3, 0, Reason::behind);

  const AppliedPlan applied = operations.apply(plan);

  EXPECT_EQ(applied.streams, 1);
  EXPECT_EQ(applied.messages, 3);
  EXPECT_EQ(applied.joined, 1);
  EXPECT_THAT(applied.changed, IsEmpty());
  EXPECT_EQ(next(), "1r1 2r2 3r3 4");
}

TEST_P(RelayJournalContract, LeavesAloneWhatIsNotAsItWasPlanned) {
  append({1, 2, 3});
  acquire();
  park(1);
  park(2);
  park(3);
  OutboxOperations operations{store_of(*subject)};
  const RetryPlan plan = operations.plan_retry({.all = true});
  EXPECT_EQ(retry(1, 1), 1);
  EXPECT_TRUE(discard(2));
  EXPECT_EQ(retry(3, 3), 1);
  subject->clock.advance(1s);
  EXPECT_TRUE(park(3, 2));

  const AppliedPlan applied = operations.apply(plan);

  EXPECT_EQ(applied.streams, 0);
  std::vector<std::string> why;
  for (const ChangedRun& run : applied.changed) why.push_back(run.why);
  EXPECT_THAT(why,
              ElementsAre("nothing of it is parked any more", "nothing of it is parked any more",
                          "it was retried, and parked again: too large"));
}

/// What a plan's report and the log say: planned, done, changed, joined.
std::vector<std::int64_t> counts_of(const RetryPlan& plan, const AppliedPlan& applied) {
  return {plan.messages(), applied.messages_done(), applied.messages_changed(), applied.joined};
}
std::vector<std::int64_t> counts_of(const OperatorAction& action) {
  return {action.planned.value_or(-1), action.done.value_or(0), action.changed.value_or(0)};
}

TEST_P(RelayJournalContract, CountsWhatWasDiscardedBehindAHeadAsChanged) {
  append({1, 1, 1, 1, 1, 2});
  acquire();
  park(1);
  for (const std::int64_t sequence : {2, 3, 4}) park(sequence, 0, Reason::behind);
  park(6);
  OutboxOperations operations{store_of(*subject)};
  const RetryPlan plan = operations.plan_retry({.all = true});
  EXPECT_TRUE(discard(2));
  EXPECT_TRUE(discard(4));
  EXPECT_TRUE(discard(6));
  park(5, 0, Reason::behind);

  const AppliedPlan applied = operations.apply(plan);

  EXPECT_THAT(counts_of(plan, applied), ElementsAre(5, 2, 3, 1));
  EXPECT_EQ(applied.gone, 2);
  EXPECT_THAT(applied.changed, SizeIs(1));
  EXPECT_THAT(counts_of(operations.actions().front()), ElementsAre(5, 2, 3));
  EXPECT_EQ(next(), "1r1 3r2 5r3");
}

/// It takes three transactions.
TEST_P(RelayJournalContract, CountsWhatIsGoneFromALongRun) {
  constexpr std::int64_t length = 1'203;
  relay::Advance advance;
  for (std::int64_t sequence = 1; sequence <= length; ++sequence) {
    subject->append(1);
    const Reason reason = sequence == 1 ? Reason::refused : Reason::behind;
    advance.parked.push_back({GlobalSequence{sequence}, 0, reason, 1, "too large"});
  }
  acquire();
  store->advance(leases[all], advance, false);
  OutboxOperations operations{store_of(*subject)};
  const RetryPlan plan = operations.plan_retry({.all = true});
  // Among them are a transaction's first and last ones.
  for (const std::int64_t sequence : {2, 500, 501, 1'203}) EXPECT_TRUE(discard(sequence));

  const AppliedPlan applied = operations.apply(plan);

  EXPECT_THAT(counts_of(plan, applied), ElementsAre(length, length - 4, 4, 0));
  EXPECT_EQ(applied.streams, 1);
  EXPECT_THAT(counts_of(operations.actions().front()), ElementsAre(length, length - 4, 4));
  EXPECT_THAT(operations.list({.state = MessageState::parked}), IsEmpty());
}

/// Operators plan and apply, others discard what waits behind heads, and writers add to the
/// streams, while eight workers park what they are given.
class Trouble {
 public:
  static constexpr int workers = 8;

  explicit Trouble(RelaySubject& subject) : subject_{subject} {
    for (int turn = 0; turn < 2; ++turn) {
      for (int stream = 1; stream <= streams; ++stream) subject.append(stream);
    }
    for (int i = 0; i < workers; ++i) {
      threads_.emplace_back([this, i] { park_all(i); });
      threads_.emplace_back([this, i] { discard_and_append(i); });
    }
  }

  void end() {
    is_over_ = true;
    threads_.clear();
  }

  std::atomic<std::int64_t> discarded{0};

 private:
  static constexpr int streams = 40;

  void park_all(int i) {
    const auto port = subject_.port();
    const PartitionId id = PartitionId::at(i, workers);
    const std::string owner = "w" + std::to_string(i);
    const auto standing = port->acquire(id, owner, 24h);
    const relay::Lease lease{id, owner, standing->epoch, standing->run};
    while (!is_over_) {
      const auto batch = port->next(id, {}, relay::BatchLimit{1});
      if (batch->messages.empty()) continue;
      const auto& message = batch->messages.front();
      port->advance(
          lease,
          parking(message.sequence.value(),
                  message.is_behind_parked ? Reason::behind : Reason::refused,
                  "refused " + std::to_string(message.sequence.value()), message.redelivery),
          false);
    }
  }

  /// The last message of a stream's run, and another one comes.
  void discard_and_append(int i) {
    OutboxOperations operations{store_of(subject_), {.who = "discarder " + std::to_string(i)}};
    for (int stream = 1 + i; !is_over_;
         stream = stream + workers > streams ? 1 + i : stream + workers) {
      const std::string name = "thing-" + std::to_string(stream);
      const auto plan = operations.plan_retry({.stream = name});
      if (!plan.runs.empty() && plan.runs[0].messages() > 1)
        discard(operations, plan.runs[0].last());
      subject_.append(stream);
    }
  }

  void discard(OutboxOperations& operations, GlobalSequence sequence) try {
    const DiscardPlan plan = operations.plan_discard({.sequences = {sequence}});
    const Affected gone = operations.apply(plan);
    EXPECT_EQ(std::ssize(plan.messages), gone.messages + gone.changed);
    discarded += gone.messages;
  } catch (const UsageError&) {
    // It was retried meanwhile.
  }

  RelaySubject& subject_;
  std::atomic<bool> is_over_{false};
  std::vector<std::jthread> threads_;
};

TEST_P(RelayJournalContract, PlansWhileOthersParkAndDiscard) {
  constexpr int rounds = 20;
  begin(Trouble::workers);
  Trouble trouble{*subject};
  OutboxOperations operations{store_of(*subject)};
  std::int64_t planned = 0;
  std::int64_t gone = 0;
  const auto until = std::chrono::steady_clock::now() + 30s;
  const auto is_enough = [&] { return planned >= 100 && gone > 0 && trouble.discarded > 0; };
  for (int i = 0; i < rounds || (!is_enough() && std::chrono::steady_clock::now() < until); ++i) {
    const RetryPlan plan = operations.plan_retry({.all = true});
    const AppliedPlan applied = operations.apply(plan);
    EXPECT_EQ(plan.messages(), applied.messages_done() + applied.messages_changed());
    EXPECT_EQ(plan.runs.size(), static_cast<std::size_t>(applied.streams) + applied.changed.size());
    planned += plan.messages();
    gone += applied.gone;
  }
  trouble.end();

  EXPECT_TRUE(is_enough()) << planned << " planned, " << gone << " gone";
  for (const OperatorAction& action : operations.actions({.limit = 10'000})) {
    const auto counts = counts_of(action);
    EXPECT_EQ(counts[0], counts[1] + counts[2]) << action.what << ' ' << action.detail;
  }
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  EXPECT_THAT(problems_of(store_of(*subject), {.checks = checks}), IsEmpty());
}

TEST_P(RelayJournalContract, LogsARetryOfManyStreamsAsOneAction) {
  append({1, 2, 3});
  acquire();
  for (const std::int64_t sequence : {1, 2, 3}) park(sequence);
  OutboxOperations operations{store_of(*subject), {.who = "ann"}};
  const RetryPlan plan = operations.plan_retry({.all = true});
  ASSERT_THAT(plan.runs, SizeIs(3));
  operations.discard({.sequences = {GlobalSequence{2}}});

  operations.apply(plan);

  const auto actions = operations.actions();
  ASSERT_THAT(actions, SizeIs(2)) << "the discard, too";
  const OperatorAction& retry = actions.front();
  EXPECT_EQ(retry.who + ": " + retry.what + ' ' + retry.selection, "ann: retry all");
  EXPECT_EQ(retry.detail, "2 messages in 2 streams");
  EXPECT_EQ(retry.state, "done");
  EXPECT_THAT((std::vector{retry.planned, retry.done, retry.changed}), ElementsAre(3, 2, 1));
  const auto steps =
      operations.actions({.direction = Direction::forward, .items_of = retry.number});
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].detail, "thing-1: 1 message, 1");
  EXPECT_EQ(steps[1].detail, "thing-3: 1 message, 3");
  EXPECT_THAT(operations.actions({.after = steps[0].number, .items_of = retry.number}), SizeIs(1));
  EXPECT_THAT(operations.actions({.items_of = actions.back().number}), IsEmpty())
      << "it was one step";
}

TEST_P(RelayJournalContract, LogsAnActionThatFailedHalfWay) {
  append({1});
  acquire();
  publish(1);
  OutboxOperations operations{store_of(*subject)};
  operations.on_progress([](const Progress&) { throw std::runtime_error{"no more"}; });

  EXPECT_THROW(operations.republish({.stream = "thing-1"}), std::runtime_error);

  const OperatorAction action = operations.actions().front();
  EXPECT_EQ(action.state, "failed");
  EXPECT_EQ(action.detail, "no more");
  EXPECT_EQ(action.done, 1);
  EXPECT_THAT(operations.actions({.items_of = action.number}), SizeIs(1));
}

TEST_P(RelayJournalContract, KeepsTheClassAndAttemptsOfWhatIsDiscarded) {
  append({1, 2});
  acquire();
  relay::Advance advance = parking(1, Reason::refused, "its payload of 1.3 MiB");
  advance.parked.front().failure = FailureClass::too_large;
  advance.parked.front().attempts = 5;
  advance.skipped = advance.parked;
  advance.skipped.front().sequence = GlobalSequence{2};
  store->advance(leases[all], advance, false);
  OutboxOperations operations{store_of(*subject)};

  operations.discard({.sequences = {GlobalSequence{1}}});

  for (const OutboxMessage& message : operations.list({.state = MessageState::discarded})) {
    EXPECT_EQ(message.failure, FailureClass::too_large) << message.sequence.value();
    EXPECT_EQ(message.attempts, 5) << message.sequence.value();
  }
  EXPECT_EQ(operations.show(GlobalSequence{1})->attempts, 5);
}

}  // namespace
}  // namespace stela::test
