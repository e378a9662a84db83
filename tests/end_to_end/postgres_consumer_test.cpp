// Consumers whose inbox is on PostgreSQL, and producers on either engine.
#include "nats/jetstream.hpp"
#include "support/histories.hpp"
#include "support/nats_server.hpp"
#include "support/orders.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres_handle.hpp>
#include <stela/framework/log.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::postgres_consumer_test {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::OrderPlaced;
using test::OrderShipped;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The publishing side.
class Shop {
 public:
  Shop(const std::string& address, const std::string& broker)
      : store{stela::open(address)},
        publisher{{.url = broker, .prefix = "shop", .stream = "SHOP", .ensure_stream = true}} {}

  void place(const std::string& key) {
    auto order = test::Order::place(Id<test::Order>::from(key), "jane", 100);
    orders.save(order);
  }
  void ship(const std::string& key) {
    auto order = orders.load(Id<test::Order>::from(key));
    order.ship("dhl");
    orders.save(order);
  }
  /// So many events of a stream that no aggregate is kept of.
  void send(const std::string& stream, int count) {
    const NewEvent shipped{"order.shipped", 1, true, R"({"carrier":"dhl"})"};
    for (int i = 0; i < count; ++i) test::append(store, stream, {shipped});
  }
  void publish() {
    EXPECT_TRUE(eventually([&] {
      relay.run_once();
      return OutboxOperations{store}.status().pending == 0;
    }));
  }

  Store store;
  Outbox outbox{store};
  nats::Publisher publisher;
  Relay relay{outbox, publisher};
  Repository<test::Order> orders{store};
};

/// The consuming side: a stream of what was handled, in order.
class Ledger {
 public:
  explicit Ledger(const std::string& address) : store{stela::open(address)} {}

  template <class E>
  static void note(Transaction& transaction, const Recorded<E>& recorded) {
    const std::string line = '"' + recorded.stream().name() + '@' +
                             std::to_string(recorded.version().value()) + ' ' +
                             std::string{E::event_type.name} + '"';
    test::append(transaction, "ledger-1", {NewEvent{"noted", 1, false, line}});
  }
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    for (const StoredEvent& event : store.read_stream(StreamId::parse("ledger-1"))) {
      all.emplace_back(event.payload.substr(1, event.payload.size() - 2));
    }
    return all;
  }

  Store store;
};

nats::ConsumerOptions consuming_from(const test::NatsServer& broker) {
  return {.url = broker.url(),
          .name = "billing",
          .stream = "SHOP",
          .retry_backoff = 20ms,
          .retry_backoff_max = 50ms,
          .max_attempts = 3};
}

std::unique_ptr<nats::Consumer> make_consumer(Ledger& ledger, const nats::ConsumerOptions& with) {
  auto consumer = std::make_unique<nats::Consumer>(ledger.store, with);
  consumer->on<OrderPlaced>(Ledger::note<OrderPlaced>);
  consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
  return consumer;
}

/// Which engine the producer's store is on, and which one the consumer's.
struct Engines {
  bool producer_on_postgres;
  bool consumer_on_postgres;
};

class MixedStores : public ::testing::TestWithParam<Engines> {
 protected:
  test::TempDir dir;
  test::PostgresServer producers;
  test::PostgresServer consumers;
  test::NatsServer broker;
  Shop shop{GetParam().producer_on_postgres ? producers.url() : dir.file("shop.db"), broker.url()};
  Ledger ledger{GetParam().consumer_on_postgres ? consumers.url() : dir.file("ledger.db")};
};

INSTANTIATE_TEST_SUITE_P(Engines, MixedStores,
                         ::testing::Values(Engines{false, true}, Engines{true, false},
                                           Engines{true, true}),
                         [](const auto& pair) {
                           return std::string{pair.param.producer_on_postgres ? "Postgres"
                                                                              : "Sqlite"} +
                                  "To" + (pair.param.consumer_on_postgres ? "Postgres" : "Sqlite");
                         });

TEST_P(MixedStores, HandleEachEventOnceAndInOrder) {
  shop.place("1");
  shop.ship("1");
  shop.place("2");
  shop.publish();
  EXPECT_EQ(make_consumer(ledger, consuming_from(broker))->run_once(),
            (nats::ConsumerTick{.handled = 3}));
  const auto again = make_consumer(ledger, consuming_from(broker));
  EXPECT_EQ(again->run_once(), nats::ConsumerTick{});
  shop.ship("2");
  shop.publish();
  EXPECT_EQ(again->run_once(), (nats::ConsumerTick{.handled = 1}));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@2 order.shipped",
                                          "order-2@1 order.placed", "order-2@2 order.shipped"));
}

class PostgresConsumer : public ::testing::Test {
 protected:
  /// Polls until the ledger has so many lines.
  bool reaches(nats::Consumer& consumer, std::size_t lines) {
    return eventually([&] {
      total += consumer.run_once();
      return ledger.lines().size() >= lines;
    });
  }
  /// Its handler of placed orders throws while it fails with something.
  std::unique_ptr<nats::Consumer> make_failing_consumer() {
    auto consumer = std::make_unique<nats::Consumer>(ledger.store, consuming_from(broker));
    consumer->on<OrderPlaced>([this](Transaction& transaction, const auto& placed) {
      Ledger::note(transaction, placed);
      if (!fails_with.empty() && placed.stream().key() == "1") {
        throw std::runtime_error{fails_with};
      }
    });
    consumer->on<OrderShipped>(Ledger::note<OrderShipped>);
    return consumer;
  }

  test::TempDir dir;
  test::PostgresServer server;
  test::NatsServer broker;
  Shop shop{dir.file("shop.db"), broker.url()};
  Ledger ledger{server.url()};
  nats::InboxOperations inbox{ledger.store};
  nats::ConsumerTick total;
  std::string fails_with = "printer on fire";
};

TEST_F(PostgresConsumer, ParksTheStreamOfAFailingMessageAndLetsOthersPass) {
  shop.place("1");
  shop.ship("1");
  shop.place("2");
  shop.publish();
  const auto consumer = make_failing_consumer();
  EXPECT_TRUE(reaches(*consumer, 1));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed"));
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(2));
  EXPECT_EQ(parked.front().stream, "order-1");
  EXPECT_EQ(parked.front().error, "printer on fire");

  fails_with.clear();
  inbox.retry(parked.front().number);
  EXPECT_TRUE(reaches(*consumer, 3));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-2@1 order.placed", "order-1@1 order.placed",
                                          "order-1@2 order.shipped"));
  EXPECT_THAT(inbox.parked(), IsEmpty());
}

TEST_F(PostgresConsumer, ParksWhatFailsTooOftenAndRevivesItForAnOperator) {
  // No text that the server takes as it is.
  fails_with = "caf\xe9";
  shop.place("1");
  shop.publish();
  const auto consumer = make_failing_consumer();
  EXPECT_TRUE(eventually([&] {
    total += consumer->run_once();
    return total.parked == 1;
  }));
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_EQ(parked.front().attempts, 3);
  EXPECT_EQ(parked.front().error, "caf?");
  EXPECT_THAT(parked.front().payload, HasSubstr("jane"));
  EXPECT_EQ(inbox.status().front().parked_messages, 1);

  fails_with.clear();
  inbox.retry(parked.front().number);
  EXPECT_EQ(consumer->run_once().revived, 1);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
  EXPECT_THAT(inbox.parked(), IsEmpty());
}

/// Others wait for a handler that writes, and for no other.
TEST_F(PostgresConsumer, LetsOthersAppendUntilAHandlerWrites) {
  shop.place("1");
  shop.place("2");
  shop.publish();
  auto beside = postgres::open(server.url(), {.busy_timeout = 100ms});
  nats::Consumer consumer{ledger.store, consuming_from(broker)};
  std::vector<std::string> refused;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    const std::string key{placed.stream().key()};
    const bool writes = key == "2";
    if (writes) Ledger::note(transaction, placed);
    try {
      test::append(beside, "note-" + key, {NewEvent{"noted", 1, false, "{}"}});
    } catch (const StoreBusy&) {
      refused.push_back(key);
    }
  });

  EXPECT_TRUE(reaches(consumer, 1));

  EXPECT_THAT(refused, ElementsAre("2"));
}

/// Does that with the message of order 2, on the connection that it is lent.
struct MisusingPostgresConsumer : PostgresConsumer {
  void consume(const char* misuse) {
    for (const char* const key : {"1", "2", "3"}) shop.place(key);
    shop.publish();
    nats::Consumer consumer{ledger.store, consuming_from(broker)};
    consumer.on<OrderPlaced>([=](Transaction& transaction, const auto& placed) {
      Ledger::note(transaction, placed);
      if (placed.stream().key() == "2") {
        PQclear(PQexec(postgres::handle(transaction), misuse));
      }
    });
    EXPECT_TRUE(eventually([&] {
      total += consumer.run_once();
      return total.parked == 1 && ledger.lines().size() > 1;
    }));
    for (int i = 0; i < 3; ++i) total += consumer.run_once();
  }
};

TEST_F(MisusingPostgresConsumer, IsParkedAndRepeatsNothingIfItCommits) {
  consume("COMMIT");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-2@1 order.placed",
                                          "order-3@1 order.placed"));
  EXPECT_EQ(total.failed, 0);
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_EQ(parked.front().attempts, 1);
  EXPECT_THAT(parked.front().error, HasSubstr("what it did before that may be committed"));
}

TEST_F(MisusingPostgresConsumer, IsTriedAgainIfItRollsBack) {
  consume("ROLLBACK");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_EQ(parked.front().attempts, 3);
  EXPECT_THAT(parked.front().error, HasSubstr("ended the transaction"));
}

TEST_F(MisusingPostgresConsumer, IsTriedAgainIfItGoesOnAfterAFailure) {
  consume("INSERT INTO nowhere VALUES (1)");
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_EQ(parked.front().attempts, 3);
  EXPECT_THAT(parked.front().error, HasSubstr("a statement failed on the connection"));
}

TEST_F(PostgresConsumer, IsNotChargedIfTheConnectionThatItsHandlerIsLentEnds) {
  shop.place("1");
  shop.publish();
  nats::Consumer consumer{ledger.store, consuming_from(broker)};
  bool ends = true;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (!std::exchange(ends, false)) return;
    PQclear(PQexec(postgres::handle(transaction), "SELECT pg_terminate_backend(pg_backend_pid())"));
    throw std::runtime_error{"no answer"};
  });

  EXPECT_THROW(consumer.run_once(), StoreBusy);
  EXPECT_TRUE(reaches(consumer, 1));

  EXPECT_EQ(total.failed, 0);
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
}

TEST_F(PostgresConsumer, ParksAMessageThatEndsItsSessionAgainAndAgain) {
  for (const char* const key : {"1", "2", "3"}) shop.place(key);
  shop.publish();
  nats::Consumer consumer{ledger.store, consuming_from(broker)};
  int calls = 0;
  consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
    Ledger::note(transaction, placed);
    if (placed.stream().key() != "2") return;
    ++calls;
    Sql{transaction}.query("SELECT pg_terminate_backend(pg_backend_pid())");
  });

  EXPECT_TRUE(eventually([&] {
    try {
      total += consumer.run_once();
    } catch (const StoreBusy&) {
    }
    return ledger.lines().size() == 2;
  }));

  EXPECT_EQ(calls, 1 + 3) << "not charged the first time, when others were in the transaction";
  const auto parked = inbox.parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_THAT(parked.front().error, HasSubstr("the server ended the session"));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-3@1 order.placed"));
}

/// As a program does that a supervisor starts again.
TEST_F(PostgresConsumer, ParksAMessageThatEndsTheSessionOfEachConsumer) {
  shop.place("1");
  shop.publish();
  int calls = 0;
  EXPECT_TRUE(eventually([&] {
    nats::Consumer consumer{ledger.store, consuming_from(broker)};
    consumer.on<OrderPlaced>([&](Transaction& transaction, const auto&) {
      ++calls;
      Sql{transaction}.query("SELECT pg_terminate_backend(pg_backend_pid())");
    });
    try {
      total += consumer.run_once();
    } catch (const StoreBusy&) {
    }
    return !inbox.parked().empty();
  }));

  // A poll that ends in a back-off gives the lease back: the next loss is as good as the first one.
  EXPECT_LE(calls, 2 * 3 + 1);
  EXPECT_THAT(inbox.parked().front().error, HasSubstr("the server ended the session"));

  // The operator's retry ends it once more.
  inbox.retry(inbox.parked().front().number);
  nats::Consumer consumer{ledger.store, consuming_from(broker)};
  consumer.on<OrderPlaced>([](Transaction& transaction, const auto&) {
    Sql{transaction}.query("SELECT pg_terminate_backend(pg_backend_pid())");
  });
  EXPECT_TRUE(eventually([&] {
    consumer.run_once();
    return inbox.parked().front().attempts == 4;
  }));
  EXPECT_THAT(inbox.parked().front().error, HasSubstr("the server ended the session"));
}

TEST_F(PostgresConsumer, NotesAGapWhenAMessageIsMissing) {
  shop.place("1");
  shop.publish();
  EXPECT_TRUE(reaches(*make_consumer(ledger, consuming_from(broker)), 1));
  shop.send("order-1", 2);
  shop.publish();
  test::JetStream{broker.url()}.erase("SHOP", 2);
  EXPECT_TRUE(reaches(*make_consumer(ledger, consuming_from(broker)), 2));
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-1@3 order.shipped"));
  const auto gaps = inbox.gaps();
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps.front().missing, StreamVersion{2});
}

/// A process's consumer, with a store of its own.
void run_consumer(const std::string& url, const test::NatsServer& broker, std::stop_token stop) {
  Ledger ledger{url};
  make_consumer(ledger, consuming_from(broker))->run(std::move(stop));
}

/// Whether each version of each stream is there once, and in order.
void expect_once_and_in_order(const std::vector<std::string>& lines, int streams, int each) {
  std::map<std::string, std::vector<int>> versions;
  for (const std::string& line : lines) {
    const std::size_t at = line.find('@');
    versions[line.substr(0, at)].push_back(std::stoi(line.substr(at + 1)));
  }
  EXPECT_EQ(versions.size(), static_cast<std::size_t>(streams));
  for (const auto& [stream, handled] : versions) {
    ASSERT_EQ(handled.size(), static_cast<std::size_t>(each)) << stream;
    for (int i = 0; i < each; ++i) EXPECT_EQ(handled[static_cast<std::size_t>(i)], i + 1) << stream;
  }
}

TEST_F(PostgresConsumer, HandlesAStreamInOrderBesideOthersThatStandBy) {
  constexpr int streams = 4;
  constexpr int each = 60;
  for (int i = 0; i < each; ++i) {
    for (int stream = 0; stream < streams; ++stream) {
      shop.send("order-" + std::to_string(stream), 1);
    }
  }
  std::vector<std::jthread> consumers;
  for (int i = 0; i < 3; ++i) {
    consumers.emplace_back([&](std::stop_token stop) { run_consumer(server.url(), broker, stop); });
  }
  shop.publish();
  EXPECT_TRUE(eventually([&] { return ledger.lines().size() >= streams * each; }, 120s));
  consumers.clear();
  expect_once_and_in_order(ledger.lines(), streams, each);
  EXPECT_THAT(inbox.gaps(), IsEmpty());
}

/// A handler may work for longer than the lease of its process: nobody takes the stream meanwhile.
TEST_F(PostgresConsumer, KeepsTheStreamWhileItsHandlerWorksForLongerThanItsLease) {
  shop.place("1");
  shop.publish();
  nats::ConsumerOptions with = consuming_from(broker);
  with.lease_ttl = 1'000ms;
  const auto other = make_consumer(ledger, with);
  std::atomic<bool> works = false;
  std::atomic<bool> may_end = false;
  std::jthread slow{[&] {
    Ledger own{server.url()};
    nats::Consumer consumer{own.store, with};
    consumer.on<OrderPlaced>([&](Transaction& transaction, const auto& placed) {
      works = true;
      EXPECT_TRUE(eventually([&] { return may_end.load(); }));
      Ledger::note(transaction, placed);
    });
    EXPECT_EQ(consumer.run_once(), (nats::ConsumerTick{.handled = 1}));
  }};
  ASSERT_TRUE(eventually([&] { return works.load(); }));
  const auto until = std::chrono::steady_clock::now() + 3 * with.lease_ttl;

  while (std::chrono::steady_clock::now() < until) total += other->run_once();
  may_end = true;
  slow = {};

  EXPECT_EQ(total, nats::ConsumerTick{});
  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed"));
}

/// Ends the server as soon as a message counts as handled.
class CrashingMetrics final : public MetricSink {
 public:
  explicit CrashingMetrics(test::PostgresServer& server) noexcept : server_{server} {}
  void count(std::string_view name, std::int64_t, Labels) noexcept override {
    if (name == "stela_consumer_handled_total") server_.crash();
  }
  void gauge(std::string_view, double, Labels) noexcept override {}
  void observe(std::string_view, double, Labels) noexcept override {}

 private:
  test::PostgresServer& server_;
};

TEST_F(PostgresConsumer, TellsWhatItHandledIfTheServerEndsBeforeItIsMeasured) {
  CrashingMetrics metrics{server};
  Store store = postgres::open(server.url(), {.busy_timeout = 100ms, .metrics = &metrics});
  nats::Consumer consumer{store, consuming_from(broker)};
  consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
  shop.place("1");
  shop.publish();
  EXPECT_EQ(consumer.run_once(), (nats::ConsumerTick{.handled = 1}));
}

TEST_F(PostgresConsumer, LosesAndRepeatsNothingWhenTheServerCrashes) {
  constexpr int each = 150;
  shop.send("order-1", each / 2);
  shop.publish();
  std::jthread consumer{[&](std::stop_token stop) { run_consumer(server.url(), broker, stop); }};
  EXPECT_TRUE(eventually([&] { return !ledger.lines().empty(); }));
  server.crash();
  shop.send("order-1", each / 2);
  shop.publish();
  server.start_again();
  EXPECT_TRUE(eventually([&] {
    try {
      return ledger.lines().size() >= each;
    } catch (const StoreBusy&) {
      return false;
    }
  }));
  consumer = {};
  expect_once_and_in_order(ledger.lines(), 1, each);
}

}  // namespace
}  // namespace stela::postgres_consumer_test
