// The consumer that was left behind: what it handled is a duplicate, all else happens once.
#include "old_databases/files.hpp"
#include "old_databases/ledger.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::old::inbox_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OldInbox, DropsHandledMessagesAndHandlesTheRestOnce) {
  const Copy source{"0.1.0/source"};
  const Copy copy{"0.1.0/consumer"};
  Opened opened{copy.path()};
  const NatsServer server;
  // The same events as before, from the database as it was before it published them.
  publish(source.path(), server.url(), opened.clock);
  nats::InboxOperations inbox{opened.store};
  const auto before = ledger_of(opened.store);
  const auto parked = inbox.parked();
  const auto gaps = inbox.gaps();
  nats::Consumer consumer{opened.store, consumer_options(server.url())};
  handle_orders(consumer, false);

  nats::ConsumerTick total;
  const bool handled = eventually([&] {
    total += consumer.run_once();
    return ledger_of(opened.store).size() == 9;
  });

  EXPECT_TRUE(handled);
  EXPECT_EQ(total.revived, 1);
  EXPECT_EQ(total.handled, 4) << "the fragile order's two, the missing one, and the revived";
  EXPECT_EQ(total.duplicates, 6) << "of nine, without the first three of those";
  EXPECT_THAT(before, ElementsAre("order-good@1", "order-good@2", "order-late@1", "order-late@3",
                                  "order-poison@2"));
  EXPECT_THAT(ledger_of(opened.store),
              ElementsAre("order-fragile@1", "order-fragile@2", "order-good@1", "order-good@2",
                          "order-late@1", "order-late@2", "order-late@3", "order-poison@1",
                          "order-poison@2"));
  EXPECT_EQ(parked.size(), 2U);
  EXPECT_EQ(gaps.size(), 1U);
  EXPECT_EQ(inbox.parked().size(), 1U) << "the foreign message waits for an operator";
  EXPECT_EQ(RawSqlite{copy.path()}.integer("SELECT sum(failing) FROM inbox_readers"), 0);
}

}  // namespace
}  // namespace stela::test::old::inbox_test
