// Handlers that fail, or misuse the connection that they are lent.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stela::consumer_handler_test {
namespace {

using namespace std::chrono_literals;
using test::Ledger;
using test::OrderPlaced;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MisusingHandler : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string key : {"1", "2", "3"}) shop.place(key);
    shop.publish();
  }
  /// A consumer whose handler does that with order 2, and nothing else.
  void consume(const std::function<void(sqlite3*)>& misuse) {
    consumer.on<OrderPlaced>([=](Transaction& transaction, const auto& placed) {
      if (placed.stream().key() == "2") return misuse(sqlite::handle(transaction));
      Ledger::note(transaction, placed);
    });
    const auto has_ended = [&] {
      total += consumer.run_once();
      return total.parked == 1;
    };
    EXPECT_TRUE(test::eventually(has_ended));
  }
  std::string error() {
    const auto parked = nats::InboxOperations{ledger.store}.parked();
    return parked.size() == 1 ? parked[0].error : "nothing parked";
  }

  nats::ConsumerOptions options() const {
    return {.url = server.url(),
            .name = "billing",
            .stream = "SHOP",
            .retry_backoff = 1ms,
            .max_attempts = 2};
  }

  test::TempDir dir;
  test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  Ledger ledger{dir.file("billing.db")};
  nats::Consumer consumer{ledger.store, options()};
  nats::ConsumerTick total;
};

struct FailingHandler : MisusingHandler {};

TEST_F(FailingHandler, IsUndoneAloneAndThoseBeforeItAreCalledOnceMore) {
  std::vector<std::string> others;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (placed.stream().key() == "2") throw std::runtime_error{"no"};
    others.emplace_back(placed.stream().key());
  });

  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return total.parked == 1;
  }));

  EXPECT_EQ(total.failed, 1);
  EXPECT_THAT(others, ElementsAre("1", "1", "3"));
  EXPECT_EQ(error(), "no");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
}

TEST_F(FailingHandler, IsExplainedIfItsExceptionHasNoText) {
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (placed.stream().key() == "2") throw std::runtime_error{""};
    Ledger::note(transaction, placed);
  });

  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return total.parked == 1;
  }));

  EXPECT_EQ(error(), "an exception without a text");
}

/// A program of an older release, say.
TEST_F(FailingHandler, IsPassedOverWithAWordWhereThereIsNone) {
  consume([](sqlite3*) { throw std::runtime_error{"no"}; });
  nats::InboxOperations inbox{ledger.store};
  inbox.retry(inbox.parked().at(0).number);
  test::RecordingLog log;
  Ledger same{dir.file("billing.db"), {.log = &log}};
  nats::Consumer without{same.store, options()};

  total += without.run_once();

  EXPECT_EQ(total.revived, 1);
  EXPECT_THAT(inbox.parked(), ::testing::IsEmpty());
  EXPECT_THAT(log.entries(), Contains(HasSubstr("was retried where no handler of 'order.placed'")));
}

/// Its partition was drained and deleted, say.
TEST_F(FailingHandler, IsTriedAgainByAReaderOfAnotherStreamIfItsOwnIsGone) {
  consume([](sqlite3*) { throw std::runtime_error{"no"}; });
  test::JetStream broker{server.url()};
  broker.delete_stream("SHOP");
  broker.make_stream("OTHER", "other.>");
  nats::InboxOperations inbox{ledger.store};
  inbox.retry(inbox.parked().at(0).number);
  auto with = options();
  with.stream = "OTHER";
  nats::Consumer other{ledger.store, with};
  other.on<OrderPlaced>(Ledger::note<OrderPlaced>);

  total += other.run_once();

  EXPECT_EQ(total.revived, 1);
  EXPECT_THAT(inbox.parked(), ::testing::IsEmpty());
  EXPECT_THAT(ledger.lines(), Contains("order-2@1 order.placed"));
}

TEST_F(FailingHandler, IsNotChargedIfMemoryIsShort) {
  bool is_short = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (is_short && placed.stream().key() == "2") throw std::bad_alloc{};
  });

  for (int i = 0; i < 5; ++i) EXPECT_THROW(total += consumer.run_once(), std::bad_alloc);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
  is_short = false;

  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return ledger.lines().size() == 3;
  }));
  EXPECT_EQ(total.failed + total.parked, 0);
}

TEST_F(FailingHandler, GoesOnOnceThereIsMemoryAgain) {
  test::RecordingLog log;
  Ledger watched{dir.file("watched.db"), {.log = &log}};
  nats::Consumer running{
      watched.store,
      {.url = server.url(), .name = "running", .stream = "SHOP", .retry_backoff = 1ms}};
  std::atomic<int> shortages = 3;
  running.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    if (shortages.fetch_sub(1) > 0) throw std::bad_alloc{};
    Ledger::note(transaction, placed);
  });
  {
    std::jthread thread{[&](std::stop_token stop) { running.run(stop); }};
    EXPECT_TRUE(test::eventually([&] { return watched.lines().size() == 3; }));
  }

  EXPECT_THAT(log.entries(), Contains(AllOf(HasSubstr("warning consumer.trouble consumer=running"),
                                            HasSubstr("memory"))));
}

TEST_F(FailingHandler, WithoutAParticipantThatItsStoreRequiresEndsTheConsumer) {
  const std::string path = dir.file("publishing.db");
  {
    Ledger publishing{path};
    const Outbox outbox{publishing.store};
  }
  Ledger incomplete{path};
  nats::Consumer appending{incomplete.store,
                           {.url = server.url(), .name = "appending", .stream = "SHOP"}};
  appending.on<OrderPlaced>([](Transaction& transaction, const auto&) {
    UnitOfWork unit{transaction};
    unit.append(StreamId::parse("invoice-1"), ExpectedVersion::any(), test::OrderShipped{"dhl"});
    unit.commit();
  });

  EXPECT_THROW(appending.run_once(), ParticipantMissing);
  EXPECT_THAT(nats::InboxOperations{incomplete.store}.parked(), ::testing::IsEmpty());
}

TEST_F(FailingHandler, ThatGoesOnAfterAFailedStatementIsLoggedAndCounted) {
  test::RecordingLog log;
  test::RecordingMetrics metrics;
  Ledger watched{dir.file("watched.db"), {.log = &log, .metrics = &metrics}};
  nats::Consumer careless{watched.store,
                          {.url = server.url(), .name = "careless", .stream = "SHOP"}};
  careless.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (placed.stream().key() != "2") return;
    try {
      Sql{transaction}.execute("INSERT INTO nowhere VALUES (1)");
    } catch (const UsageError&) {
    }
  });
  EXPECT_TRUE(test::eventually([&] {
    total += careless.run_once();
    return total.handled == 3;
  }));
  EXPECT_THAT(log.entries(), Contains(AllOf(HasSubstr("warning consumer.statement_failed"),
                                            HasSubstr("order-2"), HasSubstr("nowhere"))));
  EXPECT_EQ(metrics.counts().at("stela_handler_failed_statements_total{handler=careless}"), 1);
}

/// Others get to write in between.
TEST_F(FailingHandler, ThatIsSlowSharesATransactionForATenthOfASecondAtMost) {
  testing::ManualClock clock;
  Ledger slow{dir.file("slow.db"), {.clock = &clock}};
  for (int i = 4; i <= 10; ++i) shop.place(std::to_string(i));
  shop.publish();
  std::vector<std::int64_t> committed;
  nats::Consumer with_slow_handler{slow.store,
                                   {.url = server.url(), .name = "slow", .stream = "SHOP"}};
  with_slow_handler.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    test::RawSqlite other{sqlite::path(slow.store)};
    committed.push_back(other.integer("SELECT count(*) FROM ledger"));
    Ledger::note(transaction, placed);
    clock.advance(40ms);
  });

  EXPECT_TRUE(test::eventually([&] {
    with_slow_handler.run_once();
    return committed.size() == 10;
  }));

  EXPECT_THAT(committed, ElementsAre(0, 0, 0, 3, 3, 3, 6, 6, 6, 9));
}

TEST_F(MisusingHandler, IsParkedIfItEndsTheTransaction) {
  consume([](sqlite3* database) {
    sqlite3_exec(database, "INSERT OR ROLLBACK INTO ledger VALUES (7, 'a'), (7, 'b')", nullptr,
                 nullptr, nullptr);
  });

  EXPECT_THAT(error(), HasSubstr("ended the transaction"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
}

TEST_F(MisusingHandler, IsParkedAndRepeatsNothingIfItCommits) {
  consume([](sqlite3* database) {
    sqlite3_exec(database, "INSERT INTO ledger (line) VALUES ('a'); COMMIT", nullptr, nullptr,
                 nullptr);
  });

  EXPECT_EQ(total.failed, 0);
  EXPECT_THAT(error(), HasSubstr("what it did before that may be committed"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "a", "order-3@1 order.placed"));
}

TEST_F(MisusingHandler, IsUndoneWithASavepointThatItLeaves) {
  consume([](sqlite3* database) {
    sqlite3_exec(database, "INSERT INTO ledger VALUES (7, 'a'); SAVEPOINT member", nullptr, nullptr,
                 nullptr);
    throw std::runtime_error{"no"};
  });

  EXPECT_EQ(error(), "no");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
}

TEST_F(MisusingHandler, IsParkedIfItLeavesADeferredKeyBroken) {
  ledger.store.transact([](Transaction& transaction) {
    test::RawSqlite{sqlite::handle(transaction)}.run(
        "CREATE TABLE items (entry REFERENCES ledger (entry) DEFERRABLE INITIALLY DEFERRED)");
  });
  consume([](sqlite3* database) {
    sqlite3_exec(database, "INSERT INTO items VALUES (77)", nullptr, nullptr, nullptr);
  });

  EXPECT_THAT(error(), HasSubstr("a deferred FOREIGN KEY constraint fails"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
}

/// What a handler throws that writes to another store than the consumer's.
TEST_F(MisusingHandler, IsParkedIfItThrowsTheFailureOfAnotherStore) {
  const std::vector<std::function<void()>> failures{
      [] { throw StoreFailed{"mine"}; }, [] { throw CommitInDoubt{"mine"}; },
      [] { throw StoreBusy{"mine"}; }, [] { throw StoreFull{"mine"}; }};
  std::size_t kind = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (placed.stream().key() != "3") failures.at(kind++ % failures.size())();
  });

  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return total.parked == 2;
  }));

  EXPECT_THAT(nats::InboxOperations{ledger.store}.parked(), ::testing::SizeIs(2));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-3@1 order.placed"));
}

/// The disk of the consumer's own store, which no message is to blame for.
TEST_F(MisusingHandler, IsNotChargedIfItMeetsAFullDisk) {
  bool is_full = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    test::RawSqlite sql{sqlite::handle(transaction)};
    sql.run(is_full ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 1000000");
    if (placed.stream().key() == "2") {
      sql.run("INSERT INTO ledger (line) VALUES (hex(zeroblob(100000)))");
      sql.run("DELETE FROM ledger WHERE length(line) > 1000");
    }
    Ledger::note(transaction, placed);
  });

  for (int i = 0; i < 5; ++i) EXPECT_THROW(total += consumer.run_once(), StoreFull);
  EXPECT_THAT(nats::InboxOperations{ledger.store}.parked(), ::testing::IsEmpty());
  is_full = false;

  EXPECT_TRUE(test::eventually([&] {
    total += consumer.run_once();
    return ledger.lines().size() == 3;
  }));
  EXPECT_EQ(total.parked, 0);
}

TEST_F(MisusingHandler, IsExplainedWhenAnOperatorTriesItsMessageAgain) {
  consume([](sqlite3* database) { sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr); });
  nats::InboxOperations inbox{ledger.store};
  inbox.retry(inbox.parked().at(0).number);

  total += consumer.run_once();

  EXPECT_EQ(total.revived, 0);
  EXPECT_THAT(error(), HasSubstr("ended the transaction"));
}

}  // namespace
}  // namespace stela::consumer_handler_test
