// What a consumer has acknowledged is still there after a power cut.
#include "nats/shop.hpp"
#include "support/print_enums.hpp"
#include "support/synced_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::consumer_power_cut_test {
namespace {

using test::Ledger;
using test::OrderPlaced;
using ::testing::SizeIs;

class AcknowledgedEffects : public ::testing::TestWithParam<sqlite::Durability> {};

INSTANTIATE_TEST_SUITE_P(Durabilities, AcknowledgedEffects,
                         ::testing::Values(sqlite::Durability::full, sqlite::Durability::relaxed),
                         ::testing::PrintToStringParamName());

TEST_P(AcknowledgedEffects, OutliveAPowerCut) {
  const test::TempDir dir;
  const test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  test::SyncedLog disk;
  const test::FaultVfs vfs{disk};
  Ledger ledger{dir.file("billing.db"), {.durability = GetParam(), .vfs = vfs.name()}};
  nats::Consumer consumer{ledger.store, {.url = server.url(), .name = "billing", .stream = "SHOP"}};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  for (const std::string key : {"1", "2", "3"}) {
    shop.place(key);
    shop.publish();
    ASSERT_EQ(consumer.poll().handled, 1);

    disk.copy_what_is_left(sqlite::path(ledger.store), dir.file("left.db"));
    const auto left = test::RawSqlite{dir.file("left.db")}.rows("SELECT line FROM ledger");
    EXPECT_THAT(left, SizeIs(std::stoul(key)));
  }
}

}  // namespace
}  // namespace stela::consumer_power_cut_test
