// The outboxes that were left behind: what waited is published, and operators' work goes on.
#include "old_databases/files.hpp"
#include "outbox/file_broker.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"

#include <stela/outbox/care.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace stela::test::old::outbox_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OldOutbox : public ::testing::Test {
 protected:
  explicit OldOutbox(const std::string& database)
      : copy{database},
        opened{copy.path()},
        broker{copy.broker(), opened.outbox->fence()},
        operations{opened.store, {.who = "ben"}} {}

  /// A relay comes when all leases have run out, and does what it can.
  void relay() {
    Relay relay{*opened.outbox, broker, {.worker = "new", .retry_jitter = 0}};
    for (int round = 0; round < 10; ++round) {
      opened.clock.advance(1min);
      relay.run_once();
    }
  }

  std::vector<std::string> problems() {
    const auto check = outbox_check();
    IntegrityCheck* const checks[] = {check.get()};
    return problems_of(opened.store, {.checks = checks});
  }

  /// Messages that came before one of an earlier event of their stream, in their partition.
  std::vector<std::string> out_of_order() {
    std::map<std::pair<std::string, std::string>, std::int64_t> last;
    std::vector<std::string> wrong;
    for (const std::string& row : broker.database().rows(
             "SELECT event || '@' || partition FROM stored WHERE id NOT IN (SELECT id FROM stored "
             "AS s WHERE s.sequence < stored.sequence AND s.partition = stored.partition) AND "
             "redelivery = 0 ORDER BY partition, sequence")) {
      const std::size_t at = row.find('@');
      const std::int64_t event = std::stoll(row.substr(0, at));
      auto& before = last[{row.substr(at), stream_of(event)}];
      if (event < before) wrong.push_back(row);
      before = event;
    }
    return wrong;
  }
  std::string stream_of(std::int64_t sequence) {
    for (const StoredEvent& event : opened.store.read_at({{GlobalSequence{sequence}}})) {
      return event.stream.name();
    }
    return {};
  }
  std::int64_t sent_twice() {
    return broker.database().integer("SELECT count(*) - count(DISTINCT id) FROM stored");
  }

  const Copy copy;
  Opened opened;
  FileBroker broker;
  OutboxOperations operations;
};

class OldLeases : public OldOutbox {
 protected:
  OldLeases() : OldOutbox{"0.1.0/leased"} {}
};

TEST_F(OldLeases, ShowTheirOwners) {
  std::vector<std::string> workers;
  for (const WorkerStatus& worker : operations.status().workers) {
    workers.push_back(worker.name + (worker.is_alive ? " alive" : " dead"));
  }
  EXPECT_THAT(workers, ElementsAre("dead dead", "one alive", "two alive"));
  EXPECT_EQ(operations.status().in_flight, 3);
}

TEST_F(OldLeases, AreRespectedUntilTheyRunOut) {
  Relay relay{*opened.outbox, broker, {.worker = "new"}};

  const std::string before = broker.log(PartitionId{1});

  relay.run_once();

  EXPECT_EQ(operations.status().partitions.at(1).owner, "one");
  EXPECT_EQ(broker.log(PartitionId{1}), before);
  EXPECT_EQ(broker.log(PartitionId{4}), "12r1 24 25") << "nobody has the adopted one";
}

TEST_F(OldLeases, AreReturnedAndNotRenewedByRelaysOfTheirVersion) {
  RawSqlite raw{copy.path()};

  EXPECT_THROW(raw.run("UPDATE outbox_partitions SET lease_until = lease_until + 1 "
                       "WHERE partition = 1 AND owner = 'one'"),
               std::runtime_error);
  raw.run("UPDATE outbox_partitions SET owner = NULL, lease_until = 0 WHERE owner = 'one'");

  EXPECT_EQ(operations.status().partitions.at(1).owner, "");
}

TEST_F(OldLeases, ArePublishedInOrderWithoutDuplicatesByWhoComesNext) {
  relay();

  const OutboxStatus status = operations.status();
  EXPECT_THAT(out_of_order(), IsEmpty());
  EXPECT_EQ(sent_twice(), 0) << "what was in flight had arrived";
  EXPECT_EQ(status.stopped, 1);
  EXPECT_EQ(status.retrying, 0);
  EXPECT_GT(status.parked, 0);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(OldLeases, ContinueWithTheNextGenerationAfterAResume) {
  relay();
  EXPECT_GT(operations.status().pending, 0) << "the resize waits for the stopped partition";

  operations.resume(PartitionId{3});
  relay();

  const OutboxStatus status = operations.status();
  EXPECT_EQ(status.pending + status.redeliveries, 0);
  EXPECT_EQ(status.stopped, 0);
  EXPECT_EQ(status.partition_count, 8);
  EXPECT_THAT(out_of_order(), IsEmpty());
  EXPECT_EQ(sent_twice(), 0);
  for (const GenerationStatus& generation : status.generations) EXPECT_TRUE(generation.is_drained);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(OldLeases, LetOperatorsRetryParkedMessages) {
  operations.resume(PartitionId{3});
  relay();
  const std::int64_t parked = operations.status().parked;

  const Affected affected = operations.retry({.all = true});
  relay();

  EXPECT_GT(parked, 0);
  EXPECT_EQ(affected.messages, parked);
  EXPECT_EQ(operations.status().parked, 0);
  EXPECT_EQ(operations.status().redeliveries, 0);
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(OldLeases, TakeNewMessagesAfterTheOldOnes) {
  operations.resume(PartitionId{3});
  for (int i = 0; i < 20; ++i) place(opened.store, "newer" + std::to_string(i));

  relay();
  const Synced synced = operations.sync(true);

  EXPECT_EQ(operations.status().pending, 0);
  EXPECT_THAT(synced.added, IsEmpty());
  EXPECT_THAT(out_of_order(), IsEmpty());
  EXPECT_THAT(problems(), IsEmpty());
}

class OldClaims : public OldOutbox {
 protected:
  OldClaims() : OldOutbox{"0.1.0/claimed"} {}
};

TEST_F(OldClaims, ArePublishedByWhoComesNext) {
  relay();
  operations.retry({.all = true});
  relay();

  const OutboxStatus status = operations.status();
  EXPECT_EQ(status.pending + status.in_flight + status.retrying + status.redeliveries, 0);
  EXPECT_EQ(status.parked, 0);
  for (const StoredEvent& event : opened.store.read_all({.from = GlobalSequence{12}})) {
    if (!event.publishes()) continue;
    EXPECT_GT(broker.database().integer("SELECT count(*) FROM stored WHERE event = " +
                                        std::to_string(event.sequence.value())),
              0)
        << event.sequence.value();
  }
  EXPECT_THAT(out_of_order(), IsEmpty());
  EXPECT_THAT(problems(), IsEmpty());
}

class OldHalt : public OldOutbox {
 protected:
  OldHalt() : OldOutbox{"0.1.0/halted"} {}
};

TEST_F(OldHalt, HoldsUntilItIsResumed) {
  relay();
  const auto before = broker.logs();

  operations.resume(PartitionId{0});
  relay();

  EXPECT_THAT(before, ElementsAre("all: 12"));
  EXPECT_THAT(broker.logs(), ElementsAre("all: 12 13 14 15"));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(OldHalt, ContinuesWithoutDiscardedMessages) {
  operations.discard({.sequences = {GlobalSequence{13}}});
  operations.resume(PartitionId{0});
  relay();

  EXPECT_THAT(broker.logs(), ElementsAre("all: 12 14 15"));
  EXPECT_THAT(problems(), IsEmpty());
}

}  // namespace
}  // namespace stela::test::old::outbox_test
