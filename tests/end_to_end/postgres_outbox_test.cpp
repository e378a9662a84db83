// What an outbox adds to appends on PostgreSQL.
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/soundness.hpp"

#include <stela/eventstore.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>
#include <stela/outbox/care.hpp>
#include <stela/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::postgres_outbox_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const NewEvent published{"order.placed", 1, true, "{}"};
const NewEvent kept{"order.seen", 1, false, "{}"};

class PostgresOutbox : public ::testing::Test {
 protected:
  Store open_store() { return stela::open(server.url()); }
  /// The sequences that wait.
  static std::vector<std::int64_t> waiting(Store& store) {
    std::vector<std::int64_t> all;
    for (const OutboxMessage& message : OutboxOperations{store}.list({})) {
      all.push_back(message.sequence.value());
    }
    return all;
  }

  test::PostgresServer server;
};

TEST_F(PostgresOutbox, EnqueuesPublishableEvents) {
  Store store = open_store();
  Outbox outbox{store};
  test::append(store, "order-1", {published, kept, published}, "id-1");
  // Neither of these appends anything.
  EXPECT_TRUE(test::append(store, "order-1", {published, kept, published}, "id-1").repeated);
  const StreamId stream = StreamId::parse("order-1");
  const StreamAppend late{stream, ExpectedVersion::none(), {&published, 1}};
  EXPECT_THROW(store.append({.streams = {&late, 1}}), ConcurrencyConflict);
  EXPECT_THROW(store.transact([](Transaction& transaction) {
    test::append(transaction, "order-2", {published});
    throw UsageError{"rolled back"};
  }),
               UsageError);
  store.transact([](Transaction& transaction) {
    test::append(transaction, "order-2", {published});
    test::append(transaction, "order-3", {kept});
    test::append(transaction, "order-2", {published});
  });
  EXPECT_THAT(waiting(store), ElementsAre(1, 3, 4, 6));
  EXPECT_EQ(OutboxOperations{store}.status().pending, 4);
}

TEST_F(PostgresOutbox, CountsPendingMessagesUpToALimit) {
  Store store = open_store();
  const Outbox outbox{store};
  const std::vector<NewEvent> many(most_counted_pending, published);
  test::append(store, "order-1", many);
  EXPECT_FALSE(OutboxOperations{store}.status().is_pending_lower_bound);

  test::append(store, "order-1", {published});

  const OutboxStatus status = OutboxOperations{store}.status();
  EXPECT_EQ(status.pending, most_counted_pending);
  EXPECT_TRUE(status.is_pending_lower_bound);
}

TEST_F(PostgresOutbox, SpreadsStreamsAsEveryoneComputesIt) {
  Store store = open_store();
  Outbox outbox{store, {.partition_count = 7}};
  for (int i = 0; i < 30; ++i) test::append(store, "order-" + std::to_string(i), {published});
  for (const OutboxMessage& message : OutboxOperations{store}.list({})) {
    EXPECT_EQ(message.partition, PartitionId::of(message.stream, 7)) << message.stream;
  }
}

TEST_F(PostgresOutbox, FollowsAResizeOfAnotherProcessAtTheNextAppend) {
  Store store = open_store();
  Outbox outbox{store, {.partition_count = 2}};
  Store other = open_store();
  const Outbox its_outbox{other};
  test::append(store, "order-1", {published});
  OutboxOperations{other}.resize(16);
  test::append(store, "order-1", {published});
  const auto messages = OutboxOperations{store}.list({});
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].partition, PartitionId::of("order-1", 2));
  EXPECT_EQ(messages[1].partition, PartitionId::of("order-1", 16));
}

TEST_F(PostgresOutbox, IsRequiredOfEveryProcess) {
  Store without = open_store();
  test::append(without, "order-1", {kept});
  Store store = open_store();
  const Outbox outbox{store};
  EXPECT_THROW(test::append(without, "order-1", {published}), ParticipantMissing);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresOutbox, BeginsWithOlderEventsOrWithout) {
  Store store = open_store();
  for (int i = 0; i < 3; ++i) test::append(store, "order-1", {published, kept});
  EXPECT_THAT(message_of<UsageError>([&] { const Outbox outbox{store}; }),
              HasSubstr("publishable events from before"));
  Outbox outbox{store, {.enable = Enable::backfill}};
  test::append(store, "order-1", {published});
  EXPECT_THAT(waiting(store), ElementsAre(1, 3, 5, 7));
}

TEST_F(PostgresOutbox, PublishesWithoutLeases) {
  const test::NatsServer broker;
  Store store = open_store();
  Outbox outbox{store, {.fence = Fence::none, .leasing = false}};
  nats::Publisher publisher{{.url = broker.url(),
                             .prefix = "shop",
                             .stream = "SHOP",
                             .fence = Fence::none,
                             .ensure_stream = true}};
  Relay relay{outbox, publisher};
  for (int i = 0; i < 5; ++i) test::append(store, "order-1", {published});
  EXPECT_EQ(relay.run_once().published, 5);
  EXPECT_EQ(OutboxOperations{store}.status().pending, 0);
}

// Where readers begin, so that removed messages which an old snapshot keeps are never walked
// through.
TEST_F(PostgresOutbox, KnowsUpToWhereNothingWaits) {
  const test::NatsServer broker;
  for (const bool leasing : {true, false}) {
    const std::string schema = leasing ? "shared" : "alone";
    Store store = postgres::open(server.url(), {.schema = schema});
    Outbox outbox{store, {.fence = Fence::none, .leasing = leasing}};
    nats::Publisher publisher{{.url = broker.url(),
                               .prefix = schema,
                               .stream = schema,
                               .fence = Fence::none,
                               .ensure_stream = true}};
    Relay relay{outbox, publisher};
    const auto drained_through = [&] {
      return server.ask("SELECT drained_through FROM " + schema + ".outbox_partitions");
    };
    EXPECT_EQ(drained_through(), "0");
    for (int i = 0; i < 3; ++i) test::append(store, "order-1", {published, kept});
    EXPECT_EQ(relay.run_once().published, 3);
    EXPECT_EQ(drained_through(), "6");
    test::append(store, "order-1", {published, published});
    EXPECT_EQ(drained_through(), "6");
    EXPECT_THAT(waiting(store), ElementsAre(7, 8));
    EXPECT_EQ(relay.run_once().published, 2);
    EXPECT_EQ(drained_through(), "8");
    EXPECT_EQ(OutboxOperations{store}.status().pending, 0);
  }
}

TEST_F(PostgresOutbox, VerifiesThatRelaysSeeEachMessage) {
  Store store = postgres::open(server.url());
  const Outbox outbox{store};
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  const VerifyOptions options{.checks = checks};
  test::append(store, "order-1", {published, published});
  EXPECT_THAT(test::problems_of(store, options), IsEmpty());
  server.ask("UPDATE stela.outbox_partitions SET drained_through = 1");
  EXPECT_THAT(test::problems_of(store, options),
              ElementsAre(HasSubstr("no relay sees its message 1: ")));
  // What the advice says.
  server.ask("UPDATE stela.outbox_partitions SET drained_through = 0");
  EXPECT_THAT(test::problems_of(store, options), IsEmpty());
}

}  // namespace
}  // namespace stela::postgres_outbox_test
