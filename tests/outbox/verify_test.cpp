#include "outbox/shop.hpp"
#include "support/soundness.hpp"

#include <stela/outbox/care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::verify_test {
namespace {

using test::Shop;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> problems_of(Store& store) {
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  return test::problems_of(store, {.checks = checks});
}

/// A shop with two messages that wait, one that is parked, one discarded, and two published.
struct Verify : ::testing::Test {
  Verify() {
    shop.too_large = {2, 4};
    shop.append_all({"order-1", "order-2", "order-3", "order-4"});
    shop.relay();
    shop.operations.discard({.sequences = {GlobalSequence{4}}});
    shop.append_all({"order-1", "order-3"});
  }

  std::vector<std::string> problems_after(const std::string& sql) {
    shop.raw().run(sql);
    return problems_of(shop.store);
  }

  Shop shop;
};

TEST_F(Verify, FindsNothingWrongWithASoundOutbox) {
  EXPECT_EQ(shop.totals(), "2 pending, 1 parked, 1 discarded, 2 published");
  EXPECT_THAT(problems_of(shop.store), IsEmpty());
  shop.operations.republish({.to = GlobalSequence{3}});
  shop.operations.retry({.all = true});
  shop.operations.resize(4);
  shop.append("order-5");
  EXPECT_THAT(problems_of(shop.store), IsEmpty());
}

/// What stands at the broker and wasn't marked can be read in part only, and is adopted.
TEST(VerifyAfterAdoption, AllowsAMessageToWaitThatTheBrokerNoLongerHas) {
  Shop shop;
  shop.append_all({"order-1", "order-2", "order-3"});
  shop.broker.after_storing = [] { throw std::runtime_error{"the process dies"}; };
  EXPECT_THROW(shop.relay(), std::runtime_error);
  shop.broker.after_storing = {};
  shop.lose_relay();
  shop.broker.database().run("DELETE FROM stored WHERE sequence = 2");
  shop.rejected = {2};
  shop.relay_until_stopped();
  ASSERT_EQ(shop.operations.status().partitions.front().stopped, StopReason::unreadable);

  shop.operations.adopt({});
  EXPECT_THAT(problems_of(shop.store), IsEmpty());
  shop.relay();

  EXPECT_EQ(shop.totals(), "1 pending, 2 published");
  EXPECT_THAT(problems_of(shop.store), IsEmpty());
}

TEST(VerifyWithoutOutbox, HasNothingToLookAt) {
  auto store = sqlite::open_in_memory();
  EXPECT_THAT(problems_of(store), IsEmpty());
}

TEST_F(Verify, NamesAPointerToNoEvent) {
  EXPECT_THAT(problems_after("UPDATE outbox_messages SET sequence = 99 WHERE sequence = 6"),
              Contains("outbox: message 99: it is pending in partition all, and its event doesn't "
                       "exist"));
}

TEST_F(Verify, NamesAMessageInAPartitionThatDoesNotExist) {
  EXPECT_THAT(problems_after("UPDATE outbox_messages SET partition = 7 WHERE sequence = 6"),
              Contains("outbox: message 6: it is pending in partition p06, which doesn't exist"));
}

TEST_F(Verify, NamesAMessageInAnotherPartitionThanItsOwn) {
  shop.operations.resize(4);
  shop.append("order-1");
  const int right = PartitionId::of("order-1", 4).number;
  const int wrong = right == 1 ? 2 : 1;
  EXPECT_THAT(
      problems_after("UPDATE outbox_messages SET partition = " + std::to_string(wrong) +
                     " WHERE sequence = 7"),
      Contains("outbox: message 7: it is pending in partition " + PartitionId{wrong}.label() +
               ", and belongs in partition " + PartitionId{right}.label()));
}

TEST_F(Verify, NamesAMessageOfALocalEvent) {
  test::append(shop.store, "order-1", {NewEvent{"noted", 1, false, "{}"}});
  EXPECT_THAT(problems_after("INSERT INTO outbox_messages (partition, sequence, stream) "
                             "SELECT 0, 7, stream FROM events WHERE sequence = 7"),
              Contains("outbox: message 7: its event isn't publishable"));
}

TEST_F(Verify, NamesAMessageOfAnotherStream) {
  EXPECT_THAT(problems_after("UPDATE outbox_messages SET stream = 2 WHERE sequence = 5"),
              Contains("outbox: message 5: its stream differs from its event's"));
}

TEST_F(Verify, NamesMessagesInTwoStates) {
  EXPECT_THAT(
      problems_after("INSERT INTO outbox_messages (partition, sequence, stream) "
                     "VALUES (0, 1, 1)"),
      Contains("outbox: message 1: it is pending, and partition all is published through 3"));
  EXPECT_THAT(problems_after("INSERT INTO outbox_messages (partition, sequence, stream) "
                             "VALUES (0, 4, 4)"),
              Contains("outbox: message 4: it is both pending and discarded"));
  EXPECT_THAT(problems_after("INSERT INTO outbox_messages (partition, sequence, stream) "
                             "VALUES (0, 2, 2)"),
              Contains("outbox: message 2: it is both pending and parked"));
}

TEST_F(Verify, FindsALostPointerByTheSums) {
  const auto problems = problems_after("DELETE FROM outbox_messages WHERE sequence = 5");
  EXPECT_THAT(problems, Contains("outbox: table outbox_messages: 6 publishable events exist, and "
                                 "5 are recorded as pending, parked, discarded or published"));
}

TEST_F(Verify, FindsNothingOnceItsAdviceToReconcileIsFollowed) {
  problems_after("DELETE FROM outbox_messages WHERE sequence = 5");
  EXPECT_EQ(shop.operations.reconcile().missing, 1);
  EXPECT_THAT(problems_of(shop.store), IsEmpty());
  EXPECT_EQ(shop.totals(), "1 pending, 1 to be sent again, 1 parked, 1 discarded, 2 published");

  for (const std::string wrong : {"parked = 7", "redeliveries = 7"}) {
    EXPECT_THAT(problems_after("UPDATE outbox_partitions SET " + wrong), Not(IsEmpty())) << wrong;
    EXPECT_EQ(shop.operations.reconcile(GlobalSequence{1}, Mode::dry_run).miscounted, 1);
    EXPECT_EQ(shop.operations.reconcile().miscounted, 1);
    EXPECT_THAT(problems_of(shop.store), IsEmpty()) << wrong;
  }
  EXPECT_EQ(shop.operations.reconcile().miscounted, 0);
  EXPECT_EQ(shop.actions().back(), "ann count all");
}

TEST_F(Verify, FindsNothingOnceItsAdviceToRemoveARowIsFollowed) {
  for (const std::string damage : {"UPDATE outbox_messages SET sequence = 99 WHERE sequence = 6",
                                   "UPDATE outbox_messages SET partition = 7 WHERE sequence = 6",
                                   "UPDATE outbox_messages SET stream = 2 WHERE sequence = 6"}) {
    Shop other;
    other.append_all({"order-1", "order-2", "order-1", "order-2", "order-1", "order-3"});
    other.raw().run(damage);
    EXPECT_THAT(problems_of(other.store), Not(IsEmpty())) << damage;
    other.raw().run("DELETE FROM outbox_messages WHERE sequence > 5");
    EXPECT_EQ(other.operations.reconcile().missing, 1) << damage;
    EXPECT_THAT(problems_of(other.store), IsEmpty()) << damage;
  }
}

TEST_F(Verify, NamesAPartitionWithAnImpossibleWatermark) {
  EXPECT_THAT(problems_after("UPDATE outbox_partitions SET published_through = 99"),
              Contains("outbox: partition all: it is published through 99, and the last event is "
                       "6"));
  EXPECT_THAT(problems_after("PRAGMA ignore_check_constraints = 1;"
                             "UPDATE outbox_partitions SET epoch = -1"),
              Contains("outbox: partition all: its epoch is negative"));
}

TEST_F(Verify, FindsAMissingPartition) {
  EXPECT_THAT(problems_after("DELETE FROM outbox_partitions"),
              Contains("outbox: table outbox_partitions: it has 0 of the 1 partitions of the "
                       "current generation"));
  EXPECT_THAT(shop.operations.sync(false).added, ElementsAre(PartitionId{0}));
}

TEST_F(Verify, NamesParkedMessagesWithoutAnEvent) {
  EXPECT_THAT(problems_after("UPDATE outbox_parked SET sequence = 99"),
              Contains("outbox: message 99: it is parked, and its event doesn't exist"));
}

TEST_F(Verify, NamesMessagesThatAreParkedBehindNothing) {
  Shop other;
  other.too_large = {1};
  other.append_all({"order-1", "order-1", "order-1"});
  other.relay();
  EXPECT_THAT(problems_of(other.store), IsEmpty());
  other.raw().run(
      "DELETE FROM outbox_parked WHERE sequence = 1;"
      "UPDATE outbox_partitions SET published = published + 1");
  EXPECT_THAT(
      problems_of(other.store),
      ElementsAre("outbox: message 2: it is parked behind a message of its stream, and none "
                  "is parked before it"));

  EXPECT_EQ(other.operations.retry({.sequences = {GlobalSequence{2}}}).messages, 2);
  other.relay();

  EXPECT_EQ(other.broker.log({0}), "2r1 3r2");
  EXPECT_EQ(other.totals(), "3 published");
  EXPECT_THAT(problems_of(other.store), IsEmpty());
}

/// As between two steps of a retry, or after it was killed there.
TEST_F(Verify, LeavesMessagesToTheRelayThatFollowThoseSentAgain) {
  Shop other;
  other.too_large = {1};
  other.append_all({"order-1", "order-1", "order-1"});
  other.relay();
  other.raw().run(
      "INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, "
      "requested_at) "
      "SELECT partition, 1, sequence, stream, 'retry', 0 FROM outbox_parked WHERE sequence = 1;"
      "DELETE FROM outbox_parked WHERE sequence = 1");
  EXPECT_THAT(problems_of(other.store), IsEmpty());

  other.too_large.clear();
  for (int i = 0; i < 2; ++i) other.relay();

  EXPECT_EQ(other.broker.log({0}), "1r1 2r2 3r3");
  EXPECT_EQ(other.totals(), "3 published");
  EXPECT_THAT(problems_of(other.store), IsEmpty());
}

TEST_F(Verify, SeesATriggerThatIsGone) {
  EXPECT_THAT(problems_after("DROP TRIGGER outbox_parked_counts"),
              Contains(HasSubstr("outbox_parked_counts")));
}

}  // namespace
}  // namespace stela::verify_test
