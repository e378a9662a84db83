// How long messages have waited in the inbox for an earlier one, by the clocks of several
// processes.
#include "inbox_held.hpp"
#include "inbox_store.hpp"
#include "nats/shop_at_broker.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stela::inbox_held_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// The inbox's bookkeeping of messages that wait for an earlier one.
class WaitingForAGap : public test::ShopAtBroker {
 protected:
  WaitingForAGap() { const nats::Consumer makes_the_inbox{ledger.store, defaults()}; }
  /// Of so many streams the second message, each without the first.
  void hold(int streams) {
    test::RawSqlite{sqlite::path(ledger.store)}.run(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(streams) + ") " + insert + "SELECT 1, 'shop', 'order-' || i, 2, 1, " +
        "CAST(printf('%016d', i) AS BLOB), 'SHOP', i, 2, " + now() + ", 0 FROM n");
  }
  /// Of one stream.
  void hold(int version, int previous) {
    const std::string number = std::to_string(version);
    test::RawSqlite{sqlite::path(ledger.store)}.run(
        insert + "VALUES (1, 'shop', 'order-1', " + number + ", " + std::to_string(previous) +
        ", CAST(printf('%016d', " + number + ") AS BLOB), 'SHOP', " + number + ", 2, " + now() +
        ", CASE " + number + " WHEN 2 THEN 0 END)");
  }
  std::vector<nats::HeldMessage> claim(nats::HeldStore& held, std::chrono::seconds patience = 60s,
                                       std::uint64_t settled_through = 1'000'000) {
    return held
        .claim({.broker_stream = "SHOP",
                .most = 1'000,
                .most_bytes = 1'000'000,
                .is_whole = true,
                .has_whole_history = true,
                .lease = 1h,
                .patience = patience,
                .on_their_way = nats::OnTheirWay{.settled_through = settled_through}})
        .messages;
  }
  /// How many of them wait no longer.
  std::size_t look(nats::HeldStore& held, std::chrono::seconds patience = 60s) {
    return claim(held, patience).size();
  }
  /// As `claim`, after the patience: their versions, with '!' if nobody waits for what is missing
  /// before them.
  std::vector<std::string> claim_after_a_minute(nats::HeldStore& held,
                                                std::uint64_t settled_through = 1'000'000) {
    for (auto time = 0s; time < 60s; time += 5s) {
      EXPECT_EQ(look(held), 0U);
      clock.advance(5s);
    }
    std::vector<std::string> versions;
    for (const nats::HeldMessage& message : claim(held, 60s, settled_through)) {
      versions.push_back(std::to_string(message.version.value()) +
                         (message.is_released ? "!" : ""));
    }
    return versions;
  }
  std::string now() const { return std::to_string(clock.now().time_since_epoch().count()); }

  static inline const std::string insert =
      "INSERT INTO inbox_held (consumer, source, stream, version, previous, event_id, "
      "broker_stream, broker_sequence, size, held_at, due_at) ";

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

/// It failed, and an earlier one came again, which is held in its place.
TEST_F(WaitingForAGap, IsDueOnceEarlierMessagesAreSettled) {
  test::RawSqlite raw{sqlite::path(ledger.store)};
  nats::InboxStore inbox{ledger.store, "billing"};
  hold(3, 2);
  raw.run(
      "INSERT INTO inbox_failures (consumer, source, stream, version, attempts, error) "
      "VALUES (1, 'shop', 'order-1', 3, 1, 'no')");
  hold(2, 1);

  EventId::Bytes id{};
  std::memcpy(id.data(), "0000000000000002", id.size());
  const nats::ReceivedEvent before{.store_id = "shop",
                                   .stream = StreamId::parse("order-1"),
                                   .version = StreamVersion{2},
                                   .id = EventId{id}};
  ledger.store.database().write([&](database::Connection& connection) {
    inbox.begin(connection);
    inbox.settle(connection, before);
  });

  EXPECT_THAT(raw.rows("SELECT version, due_at IS NULL FROM inbox_held"), ElementsAre("3|0"));
}

TEST_F(WaitingForAGap, IsDueWhenAConsumerFindsThatNothingBeforeItIsHeld) {
  hold(3, 2);
  test::RawSqlite raw{sqlite::path(ledger.store)};
  ASSERT_THAT(raw.rows("SELECT version, due_at IS NULL FROM inbox_held"), ElementsAre("3|1"));

  const nats::Consumer begins{ledger.store, defaults()};

  EXPECT_THAT(raw.rows("SELECT version, due_at IS NULL FROM inbox_held"), ElementsAre("3|0"));
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

TEST_F(WaitingForAGap, EndsForAllGapsOfAStreamAtOnce) {
  hold(2, 1);
  hold(3, 2);
  hold(5, 4);
  hold(7, 6);
  nats::HeldStore held{ledger.store, 1};

  EXPECT_THAT(claim_after_a_minute(held), ElementsAre("2!", "3", "5!", "7!"));
}

TEST_F(WaitingForAGap, ContinuesForAGapBeforeALaterMessage) {
  hold(2, 1);
  nats::HeldStore held{ledger.store, 1};
  EXPECT_EQ(look(held), 0U);
  clock.advance(30s);
  hold(4, 3);

  EXPECT_EQ(look(held, 30s), 1U);
}

TEST_F(WaitingForAGap, ContinuesForMessagesThatMayBeInFlight) {
  hold(2, 1);
  hold(4, 3);
  hold(6, 5);
  nats::HeldStore held{ledger.store, 1};

  EXPECT_THAT(claim_after_a_minute(held, 4), ElementsAre("2!", "4!"));
}

}  // namespace
}  // namespace stela::inbox_held_test
