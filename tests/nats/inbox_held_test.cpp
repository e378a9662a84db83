// How long messages have waited in the inbox for an earlier one, by the clocks of several
// processes.
#include "inbox_held.hpp"
#include "nats/shop_at_broker.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace stela {
namespace {

using namespace std::chrono_literals;

/// The inbox's bookkeeping of messages that wait for an earlier one.
class WaitingForAGap : public test::ShopAtBroker {
 protected:
  WaitingForAGap() { const nats::Consumer makes_the_inbox{ledger.store, defaults()}; }
  void hold(int streams) {
    test::RawSqlite{ledger.store.path()}.run(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(streams) +
        ") INSERT INTO inbox_held (consumer, source, stream, version, previous, event_id, "
        "broker_stream, broker_sequence, size, held_at, due_at) SELECT 1, 'shop', 'order-' || i, "
        "2, 1, CAST(printf('%016d', i) AS BLOB), 'SHOP', i, 2, " +
        std::to_string(clock.now().time_since_epoch().count()) + ", 0 FROM n");
  }
  /// How many of them wait no longer.
  std::size_t look(nats::HeldStore& held, std::chrono::seconds patience = 60s) {
    return held
        .claim({.broker_stream = "SHOP",
                .most = 1'000,
                .most_bytes = 1'000'000,
                .is_whole = true,
                .has_whole_history = true,
                .lease = 1h,
                .patience = patience,
                .on_their_way = nats::OnTheirWay{.settled_through = 1'000'000}})
        .messages.size();
  }

  testing::ManualClock clock;
  test::Ledger ledger{dir.file("billing.db"), {.clock = &clock}};
};

TEST_F(WaitingForAGap, EndsForMoreStreamsThanAProcessWatches) {
  hold(100'100);
  nats::HeldStore held{ledger.store, 1};

  std::size_t ended = 0;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i <= 100; ++i) ended += look(held, 10s);
    clock.advance(6s);
  }

  EXPECT_EQ(ended, 100'100U);
}

TEST_F(WaitingForAGap, CountsNoTimeTwice) {
  hold(1);
  nats::HeldStore seldom{ledger.store, 1};
  nats::HeldStore often{ledger.store, 1};

  std::size_t too_early = look(seldom);
  for (auto time = 0s; time < 50s; time += 5s) {
    too_early += look(often);
    clock.advance(5s);
  }
  clock.jump_to(clock.now() + 1h);
  too_early += look(seldom);
  clock.advance(5s);
  too_early += look(often) + look(seldom);
  clock.advance(5s);

  EXPECT_EQ(too_early, 0U);
  EXPECT_EQ(look(often), 1U);
}

TEST_F(WaitingForAGap, CountsFiveSecondsOfAProcessThatHasNotSeenIt) {
  hold(1);
  clock.jump_to(clock.now() + 1h);

  std::size_t too_early = 0;
  for (int process = 0; process < 11; ++process) {
    nats::HeldStore held{ledger.store, 1};
    too_early += look(held) + look(held);
    clock.jump_to(clock.now() + 1h);
  }

  EXPECT_EQ(too_early, 0U);
  nats::HeldStore twelfth{ledger.store, 1};
  EXPECT_EQ(look(twelfth), 1U);
}

}  // namespace
}  // namespace stela
