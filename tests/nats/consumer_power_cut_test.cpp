// What a power cut takes away of effects and positions, it takes away together.
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

class PowerCut : public ::testing::TestWithParam<sqlite::Durability> {};

INSTANTIATE_TEST_SUITE_P(Durabilities, PowerCut,
                         ::testing::Values(sqlite::Durability::full, sqlite::Durability::relaxed),
                         ::testing::PrintToStringParamName());

TEST_P(PowerCut, TakesNoEffectForGoodAndDoublesNone) {
  const test::TempDir dir;
  const test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  test::SyncedLog disk;
  const test::FaultVfs vfs{disk};
  const auto consume = [&](Ledger& ledger) {
    nats::Consumer consumer{ledger.store,
                            {.url = server.url(), .name = "billing", .stream = "SHOP"}};
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    consumer.run_once();
  };
  Ledger ledger{dir.file("billing.db"), {.durability = GetParam(), .vfs = vfs.name()}};
  for (const std::string key : {"1", "2", "3"}) {
    shop.place(key);
    shop.publish();
    consume(ledger);

    const std::string left = dir.file("left" + key + ".db");
    disk.copy_what_is_left(sqlite::path(ledger.store), left);
    Ledger after{left};
    consume(after);

    EXPECT_EQ(after.lines(), ledger.lines());
    EXPECT_THAT(after.lines(), SizeIs(std::stoul(key)));
  }
}

}  // namespace
}  // namespace stela::consumer_power_cut_test
