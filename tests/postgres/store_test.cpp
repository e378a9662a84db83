// A store on PostgreSQL when several use it, and when its server or a connection ends.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"
#include "support/thread_each.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::postgres::store_test {
namespace {

using test::eventually;
using test::message_of;
using test::PostgresServer;
using test::TcpProxy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AppendResult append(EventLog& log, std::string_view stream,
                    ExpectedVersion expected = ExpectedVersion::any(),
                    std::string_view append_id = {}) {
  const StreamId id = StreamId::parse(stream);
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{id, expected, {&event, 1}};
  return log.append({.streams = {&one, 1}, .append_id = append_id});
}

std::vector<std::int64_t> sequences(EventStore& store) {
  std::vector<std::int64_t> all;
  for (const StoredEvent& event : store.read_all()) all.push_back(event.sequence.value());
  return all;
}

class PostgresStore : public ::testing::Test {
 protected:
  /// What the first column of the first row holds.
  std::string ask(const std::string& sql) {
    Connection connection{{.conninfo = server.url()}};
    const Result result = connection.query_text(sql, {});
    return result.rows() > 0 ? std::string{result.bytes(0, 0)} : std::string{};
  }
  Store open_store(Options options = {}) { return postgres::open(server.url(), options); }
  bool waits_for_lock() {
    return ask("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
               "AND query ~ 'stela.append_[a-z_]+[(]'") == "t";
  }
  /// Commits an event that isn't on the disk, with a checksum that nobody looks at.
  void commit_unflushed() {
    Connection connection{{.conninfo = server.url()}};
    connection.execute(
        "SET synchronous_commit = off; INSERT INTO stela.events SELECT sequence + 1, stream, "
        "version + 1, recorded_at, 0, 0, kind, gen_random_uuid(), NULL, NULL, NULL, '' "
        "FROM stela.events ORDER BY sequence DESC LIMIT 1");
  }

  PostgresServer server{{.tcp = true}};
};

/// Holds the tables, so that an append waits under the order lock.
class Holder {
 public:
  explicit Holder(const PostgresServer& server) : connection_{{.conninfo = server.url()}} {
    connection_.execute("BEGIN");
    connection_.execute("LOCK TABLE stela.append_ids, stela.events IN ACCESS EXCLUSIVE MODE");
  }
  void release() { connection_.execute("COMMIT"); }

 private:
  Connection connection_;
};

TEST_F(PostgresStore, IsOpenedByItsUrl) {
  Store first = stela::open(server.url());
  append(first, "order-1");
  Store second = stela::open(server.url());
  EXPECT_EQ(second.id(), first.id());
  EXPECT_EQ(second.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresStore, TakesAggregatesAndPositionsOfItsOtherHandlesAsItsOwn) {
  using test::Order;
  Order order = Order::place(Id<Order>::from("7"), "jane", 100);
  std::optional<Store> one{postgres::open(server.url())};
  std::optional<Store> two{postgres::open(server.url())};
  Repository<Order>{*one}.save(order);
  order.note("by the other handle");
  EXPECT_EQ(Repository<Order>{*two}.save(order).last, GlobalSequence{2});
  const AppendCondition read =
      AppendCondition::at(one->standpoint(), {{{.tags = {StreamId::parse("order-7")}}}});
  two->append({.condition = &read});

  one.reset();
  two.reset();
  one.emplace(postgres::open(server.url()));
  order.note("by the handle that was opened again");
  EXPECT_EQ(Repository<Order>{*one}.save(order).last, GlobalSequence{3});
}

TEST_F(PostgresStore, IsMadeOnceByAllThatOpenItAtOnce) {
  std::vector<std::optional<Uuid>> ids(4);
  std::vector<std::jthread> threads;
  for (auto& id : ids) threads.emplace_back([&] { id = open_store().id(); });
  threads.clear();
  for (const auto& id : ids) EXPECT_EQ(id, ids.front());
}

TEST_F(PostgresStore, KeepsItsFactsAndItsMigrations) {
  open_store({.codec = Codec::portable_binary});
  EXPECT_THAT(message_of<UsageError>([&] { open_store({.codec = Codec::json}); }),
              HasSubstr("made with codec 'portable_binary'"));
  EXPECT_EQ(open_store().conventions().codec, Codec::portable_binary);
  ask("INSERT INTO stela.stela_migrations VALUES ('eventstore', 99, 'newer', '', now(), 99, 99)");
  EXPECT_THAT(message_of<SchemaMismatch>([&] { open_store(); }), HasSubstr("newer Stela"));
  ask("UPDATE stela.stela_migrations SET checksum = 'another' WHERE number = 1");
  EXPECT_THAT(message_of<SchemaMismatch>([&] { open_store(); }), HasSubstr("export the events"));
}

TEST_F(PostgresStore, LetsOlderProcessesGoOnUntilAMigrationShutsThemOut) {
  Store running = open_store();
  append(running, "order-1");
  // A newer Stela's, that only adds.
  ask("INSERT INTO stela.stela_migrations VALUES ('eventstore', 99, 'adds', '', now(), 1, 1)");
  append(running, "order-1");
  EXPECT_EQ(open_store().last_sequence(), GlobalSequence{2});

  ask("UPDATE stela.stela_migrations SET oldest_writer = 99 WHERE number = 99");
  ask("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
  EXPECT_THAT(message_of<SchemaMismatch>([&] { append(running, "order-1"); }),
              HasSubstr("restart this process"));
  EXPECT_THAT(message_of<SchemaMismatch>([&] { open_store(); }), HasSubstr("use that one"));
  EXPECT_EQ(open_store({.read_only = true}).last_sequence(), GlobalSequence{2});
  EXPECT_EQ(running.last_sequence(), GlobalSequence{2});

  ask("UPDATE stela.stela_migrations SET oldest_reader = 99 WHERE number = 99");
  EXPECT_THROW(open_store({.read_only = true}), SchemaMismatch);
}

TEST_F(PostgresStore, NotesWhomAMigrationShutsOut) {
  static constexpr std::array<database::Migration, 3> migrations{
      {{1, "first", "CREATE TABLE stela.first (n integer)"},
       {2, "second", "-- Shuts out older writers.\nCREATE TABLE stela.second (n integer)"},
       {3, "third", "-- Shuts out older readers.\nCREATE TABLE stela.third (n integer)"}}};
  const std::span all{migrations};
  Store older = open_store();
  Store newer = open_store();
  older.database().migrate("shop", {}, all.first(1));
  append(older, "order-1");
  EXPECT_THROW(open_store({.migrate = false}).database().migrate("shop", {}, all), SchemaMismatch);
  newer.database().migrate("shop", {}, all);
  EXPECT_EQ(ask("SELECT string_agg(oldest_reader || ',' || oldest_writer, ' ' ORDER BY number) "
                "FROM stela.stela_migrations WHERE module = 'shop'"),
            "1,1 1,2 3,3");
  append(newer, "order-1");
  EXPECT_THROW(append(older, "order-1"), SchemaMismatch);
}

TEST_F(PostgresStore, ReadsALargeNewStoreInLinearTime) {
  constexpr int appends = 20;
  constexpr std::size_t each = 1000;
  {
    Store store = open_store();
    for (int i = 0; i < appends; ++i) test::append(store, "order-1", each);
  }
  // The server has no statistics of the table yet, and counts the rows that it reads.
  const auto rows_read = [&](const AllQuery& query) {
    const std::string count =
        "SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_user_tables "
        "WHERE relname = 'events'";
    const std::string before = ask(count);
    {
      Store store = open_store();
      std::int64_t events = 0;
      for (const StoredEvent& event : store.read_all(query)) events = event.sequence.value();
      EXPECT_EQ(events, appends * static_cast<std::int64_t>(each));
    }
    EXPECT_TRUE(eventually([&] { return ask(count) != before; }));
    return std::stoll(ask(count)) - std::stoll(before);
  };
  const std::int64_t all = appends * static_cast<std::int64_t>(each);
  EXPECT_LT(rows_read({}), 3 * all);
  EXPECT_LT(rows_read({.categories = {"order"}}), 6 * all);
}

TEST_F(PostgresStore, RefusesMissingFeatures) {
  Store store = open_store();
  EXPECT_THAT(message_of<UsageError>([&] { (void)sqlite::path(store); }),
              HasSubstr("isn't on SQLite"));
  EXPECT_THAT(
      message_of<UsageError>([&] { open_store({.busy_timeout = std::chrono::milliseconds{0}}); }),
      HasSubstr("busy_timeout is 0 ms; it must be above 0, and at most 24 h"));
  EXPECT_THAT(
      message_of<UsageError>([&] { open_store({.commit_timeout = std::chrono::hours{25}}); }),
      HasSubstr("commit_timeout is 25 h"));
}

TEST_F(PostgresStore, IsAppendOnly) {
  Store store = open_store();
  append(store, "order-1");
  for (const char* const table : {"events", "streams", "event_kinds"}) {
    EXPECT_THROW(ask(std::string{"DELETE FROM stela."} + table), Error) << table;
    EXPECT_THROW(ask(std::string{"TRUNCATE stela."} + table), Error) << table;
  }
}

TEST_F(PostgresStore, OrdersAppendsOfSeveralProcesses) {
  constexpr int stores = 3;
  constexpr int threads = 3;
  constexpr int each = 20;
  Store reader = open_store();
  std::vector<Store> writers;
  for (int i = 0; i < stores; ++i) writers.push_back(open_store());
  std::atomic<int> working{stores * threads};
  std::atomic<int> invisible{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < stores * threads; ++i) {
    workers.emplace_back([&, i] {
      Store& store = writers[static_cast<std::size_t>(i % stores)];
      for (int j = 0; j < each; ++j) {
        const AppendResult answer = append(store, "order-" + std::to_string((i + j) % 4));
        if (reader.last_sequence() < answer.last) ++invisible;
      }
      --working;
    });
  }
  // A naive tail misses nothing: what it has seen is dense.
  std::int64_t next = 1;
  bool was_last = false;
  while (!was_last) {
    was_last = working == 0;
    for (const StoredEvent& event : reader.read_all({.from = GlobalSequence{next}})) {
      ASSERT_EQ(event.sequence.value(), next++);
    }
  }
  EXPECT_EQ(next - 1, stores * threads * each);
  // What is answered is visible, in another store too.
  EXPECT_EQ(invisible, 0);
}

TEST_F(PostgresStore, GivesEachMemberOfAGroupItsOwnOutcome) {
  Store store = open_store();
  append(store, "order-1");
  std::optional<Holder> holder{server};
  std::vector<std::string> outcomes(8);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    threads.emplace_back([&, i] {
      const bool loses = i % 2 == 0;
      const auto expected = loses ? ExpectedVersion::none() : ExpectedVersion::any();
      try {
        // Equal append ids, too.
        outcomes[i] = append(store, "order-1", expected, loses ? "" : "id-1").repeated ? "repeated"
                                                                                       : "appended";
      } catch (const ConcurrencyConflict&) {
        outcomes[i] = "conflict";
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return waits_for_lock(); }));
  holder->release();
  threads.clear();
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "conflict"), 4);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "appended"), 1);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "repeated"), 3);
  EXPECT_THAT(sequences(store), ElementsAre(1, 2));
}

TEST_F(PostgresStore, IsBusyWhileAnotherHoldsTheLock) {
  Store store = open_store({.busy_timeout = std::chrono::milliseconds{100}});
  Store other = open_store();
  other.transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    EXPECT_THROW(append(store, "order-2"), StoreBusy);
  });
  EXPECT_EQ(append(store, "order-2").first, GlobalSequence{2});
}

TEST_F(PostgresStore, SeesNoEventOfATransactionBesideItUntilItCommits) {
  Store store = open_store();
  Store other = open_store();
  other.transact([&](Transaction& transaction) {
    append(store, "order-1");
    append(transaction, "order-1", ExpectedVersion::exactly(StreamVersion{1}));
    EXPECT_THAT(sequences(store), ElementsAre(1));
  });
  EXPECT_THAT(sequences(store), ElementsAre(1, 2));
}

TEST_F(PostgresStore, LosesNothingThatWasAnsweredWhenTheServerCrashes) {
  Store store = open_store();
  server.stop_flushing_in_the_background();
  append(store, "order-1");
  commit_unflushed();
  // Its answer rests on an event that only the flush makes durable.
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  commit_unflushed();
  server.crash();
  server.start_again();

  EXPECT_EQ(ask("SELECT max(sequence)::text FROM stela.events"), "2");
  // What it knew of the server's last run is forgotten with it.
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  EXPECT_EQ(append(store, "order-2").first, GlobalSequence{3});
}

TEST_F(PostgresStore, AppendsOnANewConnectionWhenTheIdleOneHasEnded) {
  Store store = open_store();
  append(store, "order-1");
  // Until the process is gone: before that its socket still takes what is sent to it.
  EXPECT_EQ(ask("SELECT bool_and(pg_terminate_backend(pid, 10000))::text FROM pg_stat_activity "
                "WHERE application_name = 'stela' AND pid <> pg_backend_pid()"),
            "true");
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  EXPECT_EQ(ask("SELECT count(*)::text FROM stela.append_groups WHERE is_void"), "0");
}

TEST_F(PostgresStore, TakesOneTransactionNumberForManyAppendsOfATransaction) {
  constexpr int appends = 100;
  Store store = open_store();
  append(store, "order-1");
  const auto next = [&] {
    return std::stoll(ask("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"));
  };
  const auto before = next();
  store.transact([&](Transaction& transaction) {
    for (int i = 0; i < appends; ++i) append(transaction, "order-1");
  });
  EXPECT_LT(next() - before, 10);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1 + appends});
}

TEST_F(PostgresStore, CommitsNothingOfATransactionInWhichAStatementFailed) {
  Store store = open_store();
  append(store, "order-1");
  EXPECT_THAT(message_of<Error>([&] {
                store.transact([&](Transaction& transaction) {
                  append(transaction, "order-1");
                  // The server refuses it, in whatever way.
                  ask("ALTER TABLE stela.append_ids RENAME TO hidden");
                  EXPECT_THROW(append(transaction, "order-2", ExpectedVersion::any(), "id-1"),
                               Error);
                  append(transaction, "order-2");
                });
              }),
              HasSubstr("nothing is written"));
  ask("ALTER TABLE stela.hidden RENAME TO append_ids");
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresStore, FlushesBeforeItTellsOfAConflict) {
  Store store = open_store();
  append(store, "order-1");
  server.stop_flushing_in_the_background();
  commit_unflushed();
  EXPECT_THROW(append(store, "order-1", ExpectedVersion::none()), ConcurrencyConflict);
  server.crash();
  server.start_again();
  EXPECT_EQ(ask("SELECT max(sequence)::text FROM stela.events"), "2");
}

TEST_F(PostgresStore, FlushesBeforeAModuleSeesRows) {
  Store store = open_store();
  append(store, "order-1");
  server.stop_flushing_in_the_background();
  for (const bool snapshot : {false, true}) {
    commit_unflushed();
    const auto look = [](database::Connection&) {};
    snapshot ? store.database().read_snapshot(look) : store.database().read(look);
  }
  server.crash();
  server.start_again();
  EXPECT_EQ(ask("SELECT max(sequence)::text FROM stela.events"), "3");
}

TEST_F(PostgresStore, LosesOfAModulesWritesOnlyThoseThatMayBeLost) {
  Store store = open_store();
  ask("CREATE TABLE stela.notes (note text)");
  server.stop_flushing_in_the_background();
  const auto note = [](const char* text) {
    return [text](database::Connection& connection) {
      connection.execute("INSERT INTO notes VALUES ('" + std::string{text} + "')");
    };
  };
  store.database().write(note("alone"));
  store.database().write_along(note("along"), database::Sync::if_shared);
  store.database().write_along(note("lost"), database::Sync::none);
  server.crash();
  server.start_again();
  EXPECT_EQ(ask("SELECT string_agg(note, ' ') FROM stela.notes"), "alone along");
}

TEST_F(PostgresStore, RollsAModulesWriteBack) {
  Store store = open_store();
  ask("CREATE TABLE stela.notes (note text)");
  const auto fail = [](database::Connection& connection) {
    connection.execute("INSERT INTO notes VALUES ('')");
    throw UsageError{"no"};
  };
  EXPECT_THROW(store.database().write(fail), UsageError);
  EXPECT_THROW(store.database().write_along(fail, database::Sync::none), UsageError);
  EXPECT_THROW(store.database().read(fail), Error);
  EXPECT_EQ(ask("SELECT count(*)::text FROM stela.notes"), "0");
}

TEST_F(PostgresStore, ShowsWhichPresencesLive) {
  Store store = open_store();
  Store other = open_store();
  auto presence = store.database().appear();
  const std::int64_t number = presence->number();
  EXPECT_EQ(other.database().is_present(number), true);
  ask("SELECT pg_terminate_backend(pid)::text FROM pg_locks WHERE objsubid = 2");
  EXPECT_TRUE(eventually([&] { return other.database().is_present(number) == false; }));
  presence->renew();
  EXPECT_EQ(other.database().is_present(number), true);
  presence.reset();
  EXPECT_TRUE(eventually([&] { return other.database().is_present(number) == false; }));
}

TEST_F(PostgresStore, ShowsAllItsPresencesOverOneConnection) {
  Store store = open_store();
  Store other = open_store();
  const std::string pids = "SELECT count(DISTINCT pid)::text FROM pg_locks WHERE objsubid = 2";
  auto first = store.database().appear();
  const auto second = store.database().appear();
  EXPECT_EQ(ask(pids), "1");
  EXPECT_NE(first->number(), second->number());

  ask("SELECT pg_terminate_backend(pid)::text FROM pg_locks WHERE objsubid = 2");
  EXPECT_TRUE(eventually([&] { return other.database().is_present(first->number()) == false; }));
  first->renew();
  EXPECT_EQ(other.database().is_present(second->number()), true) << "it is renewed along";

  const std::int64_t gone = first->number();
  first.reset();
  EXPECT_EQ(other.database().is_present(gone), false);
  EXPECT_EQ(other.database().is_present(second->number()), true);
}

TEST_F(PostgresStore, GoesByTheServersClockUnlessItIsGivenOne) {
  Store store = open_store();
  const auto micros =
      std::stoll(ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text"));
  const Timestamp server_time{std::chrono::microseconds{micros}};
  EXPECT_LT(store.database().now() - server_time, std::chrono::seconds{10});
  EXPECT_GE(store.database().now(), server_time);
}

TEST_F(PostgresStore, FlushesBeforeATransactionFails) {
  Store store = open_store();
  append(store, "order-1");
  server.stop_flushing_in_the_background();
  commit_unflushed();
  EXPECT_THROW(store.transact([](Transaction& transaction) {
    append(transaction, "order-1", ExpectedVersion::none());
  }),
               ConcurrencyConflict);
  server.crash();
  server.start_again();
  EXPECT_EQ(ask("SELECT max(sequence)::text FROM stela.events"), "2");
  // The connection that was kept is another one now.
  store.transact([](Transaction& transaction) { append(transaction, "order-1"); });
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

TEST_F(PostgresStore, RollsBackATransactionWhoseConnectionEnds) {
  Store store = open_store();
  append(store, "order-1");
  EXPECT_THAT(message_of<StoreBusy>([&] {
                store.transact([&](Transaction& transaction) {
                  append(transaction, "order-1");
                  ask("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity "
                      "WHERE state = 'idle in transaction'");
                });
              }),
              HasSubstr("nothing was written"));
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

TEST_F(PostgresStore, FindsACommitWhoseAnswerWasLost) {
  TcpProxy proxy{server.port()};
  open_store();
  Store store = postgres::open("host=127.0.0.1 user=postgres dbname=postgres port=" +
                               std::to_string(proxy.port()));
  append(store, "order-1");
  std::optional<Holder> holder{server};
  std::optional<AppendResult> result;
  std::jthread appending{[&] { result = append(store, "order-1"); }};
  ASSERT_TRUE(eventually([&] { return waits_for_lock(); }));
  // The server has all of it, and commits when the lock is free, whoever listens.
  proxy.cut();
  holder->release();
  appending.join();

  ASSERT_TRUE(result);
  EXPECT_EQ(result->first, GlobalSequence{2});
  EXPECT_EQ(result->last, GlobalSequence{2});
  EXPECT_THAT(result->versions, ElementsAre(StreamVersion{2}));
  EXPECT_THAT(sequences(store), ElementsAre(1, 2));
}

TEST_F(PostgresStore, FindsCommitsOfAsynchronousAppendsWhoseAnswerWasLost) {
  TcpProxy proxy{server.port()};
  ask("ALTER SYSTEM SET track_functions = 'pl'");
  ask("SELECT pg_reload_conf()::text");
  open_store();
  Store store = postgres::open("host=127.0.0.1 user=postgres dbname=postgres port=" +
                               std::to_string(proxy.port()));
  append(store, "order-1");
  std::optional<Holder> holder{server};
  test::ThreadEach threads;
  std::promise<void> all_are_there;
  const std::shared_future<void> gate{all_are_there.get_future()};
  std::vector<std::string> answers(20);
  {
    AsyncStore async{store, [&, post = threads.post()](AsyncStore::Task task) {
                       post([gate, task = std::move(task)] {
                         gate.wait();
                         task();
                       });
                     }};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const StreamId order = StreamId::parse("order-1");
      const NewEvent event{"noted", 1, false, "{}"};
      const auto version = static_cast<std::int64_t>(i == 10 ? 3 : i < 10 ? i + 1 : i);
      const StreamAppend one{order, ExpectedVersion::exactly(StreamVersion{version}), {&event, 1}};
      async.append(
          OwnedAppend{{.streams = {&one, 1}}},
          [&answer = answers[i]](const std::exception_ptr& error, const AppendResult& result) {
            answer = error ? "failed" : std::to_string(result.first.value());
          });
    }
    all_are_there.set_value();
    ASSERT_TRUE(eventually([&] { return waits_for_lock(); }));
    proxy.cut();
    holder->release();
    ASSERT_TRUE(eventually([&] { return async.in_flight() == 0; }));
  }

  std::vector<std::string> expected;
  for (int i = 2; i <= 20; ++i) expected.push_back(std::to_string(i));
  expected.insert(expected.begin() + 10, "failed");
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(sequences(store).size(), 20U);
  // Their group is asked for once, not by each of them.
  EXPECT_TRUE(eventually([&] {
    return ask("SELECT calls::text FROM pg_stat_user_functions WHERE funcname = 'settle_group'") ==
           "1";
  }));
}

TEST_F(PostgresStore, VoidsACommitThatNeverCame) {
  Store store = open_store();
  append(store, "order-1");
  std::optional<Holder> holder{server};
  std::string said;
  std::jthread appending{[&] { said = message_of<StoreBusy>([&] { append(store, "order-1"); }); }};
  ASSERT_TRUE(eventually([&] { return waits_for_lock(); }));
  ask("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity "
      "WHERE query ~ 'stela.append_[a-z_]+[(]' AND pid <> pg_backend_pid()");
  holder->release();
  appending.join();

  EXPECT_THAT(said, HasSubstr("nothing was written"));
  EXPECT_EQ(ask("SELECT count(*)::text FROM stela.append_groups WHERE is_void"), "1");
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

TEST_F(PostgresStore, LetsNobodyWaitForAClientThatStillSends) {
  using namespace std::chrono_literals;
  TcpProxy proxy{server.port()};
  Store store = open_store({.busy_timeout = 1s});
  append(store, "order-1");
  Store slow = postgres::open("host=127.0.0.1 user=postgres dbname=postgres port=" +
                              std::to_string(proxy.port()));
  slow.last_sequence();
  proxy.limit(TcpProxy::Direction::requests, 2'000'000);
  std::string payload(8'000'000, 'a');
  payload.front() = payload.back() = '"';
  const NewEvent large{"a", 1, false, payload};
  std::jthread appending{[&] {
    const StreamId id = StreamId::parse("order-2");
    const StreamAppend one{id, ExpectedVersion::any(), {&large, 1}};
    slow.append({.streams = {&one, 1}});
  }};
  ASSERT_TRUE(eventually([&] {
    return ask("SELECT count(*)::text FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
               "AND xact_start < clock_timestamp() - interval '0.2 s'") == "1";
  }));
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
  appending.join();
  EXPECT_THAT(sequences(store), ElementsAre(1, 2, 3));
  // A transaction of the user's, which has the lock, ends with its client's host.
  proxy.limit(0);
  slow.transact([](Transaction& transaction) {
    EXPECT_EQ(
        Sql{transaction}.value<int>("SELECT sum(current_setting('tcp_keepalives_' || t)::int) "
                                    "FROM unnest(ARRAY['idle', 'interval', 'count']) AS t"),
        18);
  });
}

TEST_F(PostgresStore, RefusesAnAppendThatTheServerTakesInNoPiece) {
  Store store = open_store();
  const std::string payload(codec::max_payload_size, 'a');
  const std::vector<NewEvent> events(16, NewEvent{"a", 1, false, payload});
  const StreamAppend all{StreamId::parse("order-1"), ExpectedVersion::any(), events};
  EXPECT_THAT(message_of<UsageError>([&] {
                store.append({.streams = {&all, 1}});
              }),
              HasSubstr("at most 1023 MiB"));
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    transaction.append({.streams = {&all, 1}});
  }),
               UsageError);
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{1});
}

TEST_F(PostgresStore, LetsNoVoidGroupCommit) {
  open_store();
  const std::string group = "'00000000-0000-4000-8000-000000000001'";
  EXPECT_EQ(ask("SELECT is_void::text FROM stela.settle_group(" + group + ")"), "true");
  EXPECT_THROW(ask("SELECT before::text FROM stela.enter_group(" + group + ")"),
               UniquenessViolated);
}

TEST_F(PostgresStore, TakesNoCancelledWaitForAStandbyForDurable) {
  Store store = open_store();
  append(store, "order-1");
  ask("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  ask("SELECT pg_reload_conf()::text");
  const auto waits = [&] {
    return ask("SELECT pid::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  };
  // The server takes its time to notice; the first append after that waits.
  std::atomic<int> answered{0};
  std::jthread appending{[&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); ++answered) append(store, "order-1");
  }};
  std::string first;
  EXPECT_TRUE(eventually([&] { return !(first = waits()).empty(); }));
  const int before = answered;
  if (!first.empty()) ask("SELECT pg_cancel_backend(" + first + ")::text");
  // It flushes again, on a new connection.
  EXPECT_TRUE(eventually([&] {
    const std::string next = waits();
    return !next.empty() && next != first;
  }));
  EXPECT_EQ(answered, before);
  appending.request_stop();
  ask("ALTER SYSTEM RESET synchronous_standby_names");
  ask("SELECT pg_reload_conf()::text");
  appending.join();
  EXPECT_EQ(answered, before + 1);
}

}  // namespace
}  // namespace stela::postgres::store_test
