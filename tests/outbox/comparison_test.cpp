// What counts as published against what stands at the broker.
#include "outbox/shop.hpp"
#include "support/print_enums.hpp"
#include "support/soundness.hpp"
#include "tables/relay_store.hpp"

#include <stela/framework/error.hpp>
#include <stela/outbox/care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::comparison_test {
namespace {

using test::Shop;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr PartitionId all{0};

/// The file in which a FileBroker keeps what was published.
class FileContents final : public BrokerContents {
 public:
  explicit FileContents(Shop& shop) : broker_{shop.broker} {}

  bool read(PartitionId partition, Take take) override {
    if (before_reading) before_reading();
    for (const FoundMessage& message : broker_.stored(partition)) take(message);
    if (after_reading) after_reading();
    return drops;
  }

  bool drops = false;
  std::function<void()> before_reading;
  std::function<void()> after_reading;

 private:
  test::FileBroker& broker_;
};

/// "3 of 5 published are missing: 2 3 4", and what else there is.
std::string in_words(const Compared& compared) {
  std::string text = std::to_string(compared.missing) + " of " + std::to_string(compared.checked) +
                     ", " + std::to_string(compared.found) + " found";
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) text += ", " + std::to_string(count) + ' ' + what;
  };
  add(compared.dropped, "dropped");
  add(compared.unknown, "unknown");
  add(compared.foreign, "foreign");
  for (const GlobalSequence sequence : compared.examples) {
    text += ' ' + std::to_string(sequence.value());
  }
  return text;
}

class Comparison : public ::testing::TestWithParam<Fence> {
 protected:
  Comparison() {
    shop.append_all({"order-1", "order-2", "order-1", "order-3"});
    shop.relay();
  }
  std::string compare(Mode mode = Mode::carry_out, std::int64_t from = 1) {
    return in_words(shop.operations.compare(broker, GlobalSequence{from}, mode));
  }
  void lose(const std::string& which) {
    shop.broker.database().run("DELETE FROM stored WHERE " + which);
  }

  Shop shop{{.fence = GetParam()}};
  FileContents broker{shop};
};

INSTANTIATE_TEST_SUITE_P(EveryFence, Comparison,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         ::testing::PrintToStringParamName());

TEST_P(Comparison, FindsNothingWhereNothingIsMissing) {
  EXPECT_EQ(compare(), "0 of 4, 4 found");
  EXPECT_EQ(shop.totals(), "4 published");
  EXPECT_THAT(shop.actions(), IsEmpty());
}

TEST_P(Comparison, RepublishesLostMessagesAndNoOthers) {
  lose("event IN (2, 3)");
  EXPECT_EQ(compare(Mode::dry_run), "2 of 4, 2 found 2 3");
  EXPECT_EQ(shop.totals(), "4 published");

  EXPECT_EQ(compare(), "2 of 4, 2 found 2 3");
  EXPECT_EQ(shop.totals(), "2 to be sent again, 2 published");
  EXPECT_EQ(compare(), "0 of 2, 2 found") << "what waits isn't asked for twice";
  shop.relay();
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 4 2r1 3r2");
  EXPECT_EQ(compare(), "0 of 4, 4 found");
}

TEST_P(Comparison, ParksLostMessagesThatTheBrokerRefuses) {
  lose("event = 2");
  shop.too_large = {2};
  compare();
  EXPECT_EQ(shop.totals(), "1 to be sent again, 3 published");
  shop.append("order-2");
  shop.relay();
  EXPECT_THAT(shop.list(), ElementsAre("2 order-2 parked refused", "5 order-2 parked behind"));
  EXPECT_EQ(shop.totals(), "2 parked, 3 published");
  EXPECT_EQ(compare(), "0 of 3, 3 found");

  shop.too_large.clear();
  shop.operations.retry({.all = true});
  shop.relay();

  EXPECT_THAT(shop.broker.log(all), EndsWith("2r2 5r3"));
  EXPECT_EQ(shop.broker.database().integer("SELECT count(*) FROM stored WHERE id LIKE '%.r%'"), 1)
      << "the broker may still take the old id for a duplicate";
  EXPECT_EQ(shop.totals(), "5 published");
  EXPECT_EQ(compare(), "0 of 5, 5 found");
}

TEST_P(Comparison, LeavesADiscardedLossDiscarded) {
  lose("event = 2");
  shop.too_large = {2};
  compare();
  shop.relay();
  shop.operations.discard({.all = true});
  shop.relay();

  EXPECT_EQ(shop.totals(), "1 discarded, 3 published");
  EXPECT_EQ(shop.operations.show(GlobalSequence{2})->state, MessageState::discarded);
  EXPECT_EQ(compare(), "0 of 3, 3 found");
  EXPECT_EQ(shop.operations.reconcile().missing, 0);
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  EXPECT_THAT(test::problems_of(shop.store, {.checks = checks}), IsEmpty());
}

TEST_P(Comparison, BeginsWhereItIsToldTo) {
  lose("event IN (1, 3)");
  EXPECT_EQ(compare(Mode::dry_run, 2), "1 of 3, 2 found 3");
}

TEST_P(Comparison, TellsDroppedMessagesFromLostOnes) {
  lose("event IN (1, 3)");
  broker.drops = true;
  EXPECT_EQ(compare(Mode::dry_run), "1 of 4, 2 found, 1 dropped 3");
  lose("event > 0");
  EXPECT_EQ(compare(Mode::dry_run), "0 of 4, 0 found, 4 dropped");
}

TEST_P(Comparison, TakesNoForgedMessageForTheFirstThatTheBrokerKept) {
  lose("event IN (1, 3)");
  shop.broker.database().run(
      "INSERT INTO stored SELECT partition, 1, id, store, 1000000000000000000, 0, '' FROM stored "
      "WHERE event = 4");
  broker.drops = true;

  EXPECT_EQ(compare(Mode::dry_run), "1 of 4, 2 found, 1 dropped, 1 unknown 3");
}

TEST_P(Comparison, TellsOfMessagesThatItDoesNotKnow) {
  auto& database = shop.broker.database();
  database.run(
      "INSERT INTO stored SELECT partition, 50, id, store, 99, 0, '' FROM stored "
      "WHERE event = 4");
  database.run(
      "INSERT INTO stored SELECT partition, 51, id, store, 2, 0, '' FROM stored "
      "WHERE event = 4");
  database.run(
      "INSERT INTO stored SELECT partition, 52, id, 'another', 1, 0, '' FROM stored "
      "WHERE event = 4");
  database.run(
      "INSERT INTO stored SELECT partition, 53, id, '', 1, 0, '' FROM stored "
      "WHERE event = 4");
  EXPECT_EQ(compare(), "0 of 4, 4 found, 2 unknown, 2 foreign");
}

TEST_P(Comparison, IgnoresMessagesThatArePublishedMeanwhile) {
  broker.after_reading = [&] {
    shop.append("order-9");
    shop.relay();
  };
  EXPECT_EQ(compare(), "0 of 4, 4 found");
  EXPECT_EQ(shop.totals(), "5 published");
}

TEST_P(Comparison, IncludesMessagesOfAHostWhoseClockWasAhead) {
  shop.clock.jump_to(shop.clock.now() + std::chrono::hours{12});
  shop.append_all({"order-5", "order-6"});
  shop.relay();
  shop.clock.jump_to(shop.clock.now() - std::chrono::hours{12});
  lose("event IN (2, 6)");

  EXPECT_EQ(compare(), "2 of 6, 4 found 2 6");
}

TEST_P(Comparison, IgnoresUnpublishedMessages) {
  shop.too_large = {5};
  shop.append_all({"order-5", "order-6"});
  shop.relay();
  shop.append("order-7");
  lose("event = 6");
  EXPECT_EQ(compare(), "1 of 5, 4 found 6");
  EXPECT_EQ(shop.totals(), "1 pending, 1 to be sent again, 1 parked, 4 published");
}

TEST_P(Comparison, ChangesNothingIfTheBrokerCannotBeRead) {
  lose("event = 2");
  broker.before_reading = [] { throw BrokerFailed{"nobody listens"}; };
  EXPECT_THROW(compare(), BrokerFailed);
  EXPECT_EQ(shop.totals(), "4 published");
}

TEST(Comparisons, ReadEveryPartitionThatEverPublished) {
  Shop shop;
  shop.append_all({"order-1", "order-2"});
  shop.relay();
  shop.operations.resize(4);
  for (int i = 0; i < 12; ++i) shop.append("order-" + std::to_string(i));
  for (int i = 0; i < 4; ++i) shop.relay();
  ASSERT_EQ(shop.totals(), "14 published");
  shop.operations.sync(true);
  FileContents broker{shop};
  EXPECT_EQ(in_words(shop.operations.compare(broker)), "0 of 14, 14 found");

  shop.broker.database().run("DELETE FROM stored WHERE event IN (1, 7)");
  EXPECT_EQ(in_words(shop.operations.compare(broker)), "2 of 14, 12 found 1 7");
  for (int i = 0; i < 3; ++i) shop.relay();
  EXPECT_EQ(in_words(shop.operations.compare(broker)), "0 of 14, 14 found");
}

/// A message that was lost, and is refused when it is sent again.
void refuse_what_was_lost(Shop& shop) {
  shop.append_all({"order-1", "order-1"});
  shop.relay();
  shop.broker.database().run("DELETE FROM stored WHERE event = 1");
  shop.too_large = {1};
  FileContents broker{shop};
  shop.operations.compare(broker);
  shop.relay();
}

TEST(Comparisons, HaltThePartitionOfALossThatIsRefused) {
  Shop shop{{}, {.on_poison = OnPoison::stop}};
  refuse_what_was_lost(shop);
  EXPECT_EQ(shop.totals(), "1 to be sent again, 1 published, 1 stopped");

  shop.operations.discard({.sequences = {GlobalSequence{1}}});

  EXPECT_EQ(shop.totals(), "1 discarded, 1 published, 1 stopped");
}

TEST(Comparisons, RecordThatALossIsSkipped) {
  Shop shop{{}, {.on_poison = OnPoison::skip}};
  refuse_what_was_lost(shop);

  EXPECT_THAT(shop.list({.state = MessageState::discarded}),
              ElementsAre("1 order-1 discarded skipped"));
  EXPECT_EQ(shop.totals(), "1 discarded, 1 published");
}

// --- what was lost

TEST(Comparisons, CountMessagesThatARestoredBackupDoesNotKnow) {
  Shop shop;
  FileContents broker{shop};
  shop.append("order-1");
  shop.relay();
  shop.lose_relay();
  shop.broker.database().run("UPDATE stored SET id = '01a1fde2-7840-7402-9112-131415161718'");
  shop.raw().run(
      "UPDATE outbox_partitions SET published = 0, published_through = 0, broker_sequence = 0, "
      "broker_id = ''; DELETE FROM outbox_batches; "
      "INSERT INTO outbox_messages (partition, sequence, stream) VALUES (0, 1, 1)");
  shop.relay();
  ASSERT_EQ(shop.operations.status().partitions.front().stopped, StopReason::store_went_back);

  EXPECT_EQ(shop.operations.compare(broker, GlobalSequence{1}, Mode::dry_run).unknown, 1);
}

class Loss : public ::testing::Test {
 protected:
  Loss() {
    shop.append_all({"order-1", "order-2", "order-1", "order-3"});
    shop.relay();
    shop.broker.database().run("DELETE FROM stored");
    shop.append("order-4");
    shop.relay_until_stopped();
  }
  Shop shop;
  FileContents broker{shop};
};

TEST_F(Loss, IsNamedByThePartitionThatItStops) {
  const PartitionStatus partition = shop.operations.status().partitions.front();
  ASSERT_EQ(partition.stopped, StopReason::broker_lost);
  EXPECT_THAT(partition.stopped_detail,
              HasSubstr("missing is what was published of events 1 to 4. If it is gone for good, "
                        "'outbox partitions adopt all' continues without it"));
}

TEST_F(Loss, IsSentAgainByWhoRepublishesIt) {
  shop.operations.adopt(all);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "5");

  const RepublishSelection lost{
      .from = GlobalSequence{1}, .to = GlobalSequence{4}, .partition = all};
  EXPECT_EQ(shop.operations.republish(lost, Mode::dry_run).messages, 4);
  EXPECT_EQ(shop.operations.republish(lost).messages, 4);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "5 1r1 2r2 3r3 4r4");
  // Where it stands now, and not where it was lost.
  const auto place = [&](std::int64_t event) {
    return shop.operations.show(GlobalSequence{event})->broker_from;
  };
  EXPECT_EQ(place(1), place(5) + 1);
  EXPECT_EQ(place(4), place(5) + 4);
}

/// The broker may have them again, and the partition resumes by itself.
TEST_F(Loss, IsNotSentAgainWhileItsPartitionIsStoppedForIt) {
  try {
    shop.operations.compare(broker, GlobalSequence{1}, Mode::carry_out);
    FAIL() << "it was sent";
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "partition all is stopped because the broker lost messages, and resumes by itself "
                 "once it has them again; adopt it before they are published again");
  }
  EXPECT_GT(shop.operations.compare(broker, GlobalSequence{1}, Mode::dry_run).missing, 0);
  const RepublishSelection lost{.from = GlobalSequence{1}, .to = GlobalSequence{4}};
  EXPECT_THROW(shop.operations.republish(lost), UsageError);
  shop.operations.adopt(all);
  EXPECT_EQ(shop.operations.republish(lost).messages, 4);
}

/// Of another store, or of another history of this one.
TEST(Comparisons, AreAdvisedWhereTheLastMessageIsOfAnEventThatTheStoreDoesNotHave) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-1", "order-3"});
  shop.relay();
  shop.broker.database().run(
      "DELETE FROM stored WHERE event > 2; "
      "UPDATE stored SET id = '01a1fde2-7840-7402-9112-131415161718' WHERE event = 2");
  shop.append("order-4");
  shop.relay_until_stopped();

  const PartitionStatus partition = shop.operations.status().partitions.front();
  ASSERT_EQ(partition.stopped, StopReason::broker_lost);
  EXPECT_THAT(partition.stopped_detail,
              HasSubstr("its last message doesn't tell what is missing. If it is gone for good, "
                        "'outbox partitions adopt all' continues without it, and after that "
                        "'outbox reconcile --against-broker'"));
}

/// Somebody adopts an emptied broker; before a worker looks, it has its old data back. The
/// parameter is where the operator says that it stands.
class ReturnedLoss : public ::testing::TestWithParam<std::optional<std::uint64_t>> {
 protected:
  ReturnedLoss() {
    shop.append_all({"order-1", "order-2", "order-1", "order-3"});
    shop.relay();
    shop.broker.database().run("CREATE TABLE kept AS SELECT * FROM stored; DELETE FROM stored");
    shop.append("order-4");
    shop.relay_until_stopped();
    shop.operations.adopt(all, GetParam());
  }
  std::string compare() { return in_words(shop.operations.compare(broker)); }
  void return_first(int count) {
    shop.broker.database().run("INSERT INTO stored SELECT * FROM kept WHERE sequence <= " +
                               std::to_string(count));
  }

  Shop shop;
  FileContents broker{shop};
};

INSTANTIATE_TEST_SUITE_P(All, ReturnedLoss, ::testing::Values(std::nullopt, 0),
                         [](const auto& said) { return said.param ? "Numbered" : "AsItStands"; });

TEST_P(ReturnedLoss, IsNotSentAgainBeforeAWorkerHasLooked) {
  try {
    compare();
    FAIL() << "it was sent";
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "partition all was adopted, and no worker has looked at the broker since: run one "
                 "before anything is published again");
  }
}

TEST_P(ReturnedLoss, IsMarkedAsPublished) {
  return_first(4);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3 4 5");
  EXPECT_EQ(shop.totals(), "5 published");
  EXPECT_EQ(compare(), "0 of 5, 5 found");
}

TEST_P(ReturnedLoss, IsMissingAsFarAsItIsNotBack) {
  return_first(2);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 5");
  EXPECT_EQ(compare(), "2 of 5, 3 found 3 4");
}

TEST_P(ReturnedLoss, IsMissingIfNothingIsBack) {
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "5");
  EXPECT_EQ(compare(), "4 of 5, 1 found 1 2 3 4");
}

/// The old data comes back after a worker went on with the emptied broker.
class LateReturn : public ::testing::TestWithParam<Fence> {
 protected:
  LateReturn() {
    shop.append_all({"order-1", "order-2", "order-1", "order-3"});
    shop.relay();
    shop.broker.database().run("CREATE TABLE kept AS SELECT * FROM stored; DELETE FROM stored");
    shop.too_large = {5};
    shop.append("order-4");
    shop.relay_until_stopped();
    shop.operations.adopt(all);
    shop.relay();
    shop.lose_relay();
    EXPECT_EQ(compare(), "4 of 4, 0 found 1 2 3 4");
    shop.broker.database().run("INSERT INTO stored SELECT * FROM kept WHERE sequence <= 3");
  }
  std::string compare() { return in_words(shop.operations.compare(broker)); }

  Shop shop{{.fence = GetParam()}};
  FileContents broker{shop};
};

INSTANTIATE_TEST_SUITE_P(Fences, LateReturn, ::testing::Values(Fence::stream, Fence::subject),
                         ::testing::PrintToStringParamName());

TEST_P(LateReturn, IsNotRepublishedWhileMissingMessagesAre) {
  shop.relay();
  if (shop.operations.status().stopped > 0) {
    shop.operations.adopt(all);
    shop.relay();
  }
  EXPECT_THAT(shop.broker.log(all), StartsWith("1 2 3 4r"));
  EXPECT_EQ(compare(), "0 of 4, 4 found");
}

/// In place of a message that was published meanwhile.
TEST(LateReturns, AreMarkedWhereAnotherMessageStood) {
  Shop shop{{.fence = Fence::subject}};
  FileContents broker{shop};
  shop.append_all({"order-1", "order-2", "order-1", "order-3"});
  shop.relay();
  shop.broker.database().run("CREATE TABLE kept AS SELECT * FROM stored; DELETE FROM stored");
  shop.append("order-4");
  shop.relay_until_stopped();
  shop.operations.adopt(all);
  shop.relay();
  ASSERT_EQ(shop.broker.log(all), "5");
  shop.lose_relay();
  EXPECT_EQ(shop.operations.compare(broker).missing, 4);
  shop.broker.database().run(
      "DELETE FROM stored; INSERT INTO stored SELECT * FROM kept WHERE sequence <= 3");
  shop.relay_until_stopped();
  shop.operations.adopt(all);
  shop.relay();

  EXPECT_EQ(shop.broker.log(all), "1 2 3 4r4");
  EXPECT_EQ(in_words(shop.operations.compare(broker)), "1 of 5, 4 found 5");
}

/// A partition that stopped for another reason.
class OtherStop : public Loss {
 protected:
  OtherStop() {
    shop.operations.adopt(all);
    shop.relay();
    add_foreign(2);
    shop.append("order-5");
    shop.relay();
  }
  void add_foreign(int at) {
    shop.broker.database().run("INSERT INTO stored VALUES (0, " + std::to_string(at) +
                               ", 'foreign-" + std::to_string(at) + "', '', 0, 0, '')");
  }
  std::optional<StopReason> stopped() {
    return shop.operations.status().partitions.front().stopped;
  }
};

TEST_F(OtherStop, IsAdopted) {
  ASSERT_EQ(stopped(), StopReason::foreign_writer);
  shop.operations.adopt(all);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "5 0 6");
}

TEST_F(OtherStop, IsAdoptedIfTheStreamWasEmptiedMeanwhile) {
  shop.broker.database().run("DELETE FROM stored");
  shop.operations.adopt(all);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "6");
}

TEST_F(OtherStop, IsAdoptedIfAnotherStreamIsThere) {
  shop.broker.database().run("DELETE FROM stored");
  for (int at = 1; at < 4; ++at) add_foreign(at);
  shop.operations.adopt(all);
  shop.relay();
  EXPECT_EQ(shop.broker.log(all), "0 0 0 6");
}

TEST(OutboxStatus, ShowsHowLongMessagesAreInFlight) {
  Shop shop;
  shop.append("order-1");
  std::optional<std::chrono::microseconds> seen;
  shop.broker.after_storing = [&] {
    shop.clock.advance(std::chrono::seconds{4});
    seen = shop.operations.status().partitions.front().flight_age;
  };
  shop.relay();
  EXPECT_EQ(seen, std::chrono::seconds{4});
  EXPECT_FALSE(shop.operations.status().partitions.front().flight_age);
}

}  // namespace
}  // namespace stela::comparison_test
