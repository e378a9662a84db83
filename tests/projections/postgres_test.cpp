// Projections on PostgreSQL: what only this engine has.
#include "projections/models.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <stela/eventstore/postgres_handle.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::postgres_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct TroubleLog final : LogSink {
  void write(const LogEntry& entry) noexcept override {
    if (entry.name == "projection.store_trouble") ++troubles;
  }
  std::atomic<int> troubles = 0;
};

class PostgresProjections : public ::testing::Test {
 protected:
  void run_sql(const std::string& sql) { test::run_on(server, sql); }
  /// What a handler that does this is stopped with.
  std::string in_handler(const std::function<void(ReadModel&)>& work) {
    ProjectionOperations operations{store};
    Projections projections{store};
    projections.add(Totals<1>{[&](ReadModel& model, const StoredEvent&) { work(model); }},
                    {.max_attempts = 1});
    place(store, std::to_string(++orders_));
    Runner{projections}.run_once();
    const std::string error = operations.status().at(0).error;
    operations.remove("totals");
    return error;
  }

  /// Where a projector stands at last whose handler calls a function that runs `sql`.
  ProjectorStatus after_calls_of(const std::string& sql) {
    run_sql("CREATE FUNCTION forget() RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE '" + sql +
            "'; RETURN ''; END $$");
    Projections projections{store};
    projections.add(Totals<1>{[](ReadModel& model, const StoredEvent&) {
                      model.value<std::string>("SELECT forget()");
                    }},
                    {.max_attempts = 1});
    Runner runner{projections};
    EXPECT_TRUE(test::eventually([&] {
      try {
        runner.run_once();
      } catch (const StoreBusy&) {
        return false;
      }
      return true;
    }));
    return ProjectionOperations{store}.status().at(0);
  }

  test::PostgresServer server;
  Store store = postgres::open(server.url());

  /// The first append after a crash may find out by failing.
  void place_after_all(const std::string& order) {
    for (int i = 0; i < 20; ++i) {
      try {
        return place(store, order);
      } catch (const StoreBusy&) {
      }
    }
    FAIL() << "the server doesn't come back";
  }

 private:
  int orders_ = 0;
};

TEST_F(PostgresProjections, LetAHandlerCatchWhatARowIsRefusedWith) {
  int refused = 0;
  EXPECT_EQ(in_handler([&](ReadModel& model) {
              refused = 0;
              for (const char* const id : {"a", "b", "a", "c"}) {
                try {
                  model.execute("INSERT INTO {orders} VALUES (?1, '', 0, 0, NULL)", id);
                } catch (const UniquenessViolated& e) {
                  EXPECT_EQ(e.constraint().table, "orders");
                  ++refused;
                }
              }
              EXPECT_EQ(model.value<int>("SELECT count(*) FROM {orders}"), 3);
            }),
            "");
  EXPECT_EQ(refused, 1);
}

TEST_F(PostgresProjections, LetAnInlineHandlerCatchWhatARowIsRefusedWith) {
  Projections projections{store};
  projections.add_inline(Totals<1>{[&](ReadModel& model, const StoredEvent&) {
    for (int i = 0; i < 2; ++i) {
      try {
        model.execute("INSERT INTO {orders} VALUES ('a', '', 0, 0, NULL)");
      } catch (const UniquenessViolated&) {
      }
    }
  }});
  place(store, "1");
  place(store, "2");
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "a  0 0 -"));
}

TEST_F(PostgresProjections, LetOthersAppendWhileAHandlerRuns) {
  bool has_appended = false;
  EXPECT_EQ(in_handler([&](ReadModel&) {
              if (std::exchange(has_appended, true)) return;
              std::jthread{[&] { place(store, "beside"); }}.join();
              Store other = postgres::open(server.url());
              place(other, "elsewhere");
            }),
            "");
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});
}

TEST_F(PostgresProjections, AppendNothingFromAHandler) {
  EXPECT_THAT(in_handler([&](ReadModel&) { place(store, "within"); }),
              HasSubstr("written to from inside its own transaction"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresProjections, GoOnThoughTheirSqlDropsWhatWasPrepared) {
  constexpr int orders = 20;
  for (int i = 0; i < orders; ++i) place(store, std::to_string(i));
  const auto status = after_calls_of("DEALLOCATE ALL");
  EXPECT_FALSE(status.stopped) << status.error;
  EXPECT_EQ(orders_in(store).size(), std::size_t{orders});
}

TEST_F(PostgresProjections, FailWithTheirOwnMistakesAboutWhatIsPrepared) {
  place(store, "1");
  const auto status = after_calls_of("DEALLOCATE nothing");
  EXPECT_TRUE(status.stopped);
  EXPECT_THAT(status.error, HasSubstr("\"nothing\" does not exist"));
}

TEST_F(PostgresProjections, WriteTablesOfTheirOwnOnly) {
  run_sql("CREATE TABLE mine (a integer)");
  const auto running = [&](const char* sql) {
    return in_handler([&](ReadModel& model) { model.execute(sql); });
  };
  for (const char* const sql : {"DELETE FROM projections", "INSERT INTO events DEFAULT VALUES",
                                "UPDATE mine SET a = 1", "UPDATE ONLY public.mine SET a = 1",
                                "MERGE INTO mine USING {orders} ON true WHEN MATCHED "
                                "THEN DELETE",
                                "WITH gone AS (DELETE FROM mine RETURNING a) SELECT * FROM gone"}) {
    EXPECT_THAT(running(sql), HasSubstr("a projector writes only tables of its own")) << sql;
  }
  EXPECT_THAT(running("CREATE TABLE {more} (a integer)"), HasSubstr("in `create` only"));
  EXPECT_THAT(running("SELECT * INTO more FROM {orders}"), HasSubstr("in `create` only"));
  EXPECT_THAT(running("DROP TABLE {orders}"), HasSubstr("in `create` only"));
  for (const char* const sql : {"COMMIT", "SET search_path = public", "VACUUM", "SELEKT 1"}) {
    EXPECT_THAT(running(sql), HasSubstr("a projector only reads")) << sql;
  }
  EXPECT_THAT(running("SELECT FROM FROM"), HasSubstr("\"SELECT FROM FROM\" failed: syntax error"));
  EXPECT_THAT(running("SELECT 1; SELECT 2"), HasSubstr("isn't one statement"));
  EXPECT_THAT(running(" "), HasSubstr("isn't one statement"));
  EXPECT_THAT(running("SELECT ?1, ?2"), HasSubstr("has 2 parameters, and 0 values were given"));
  EXPECT_THAT(running("SELECT * FROM {nothing}"), HasSubstr("\"nothing\" does not exist"));
  EXPECT_EQ(running("UPDATE {orders} SET notes = 1 WHERE id IN (SELECT id FROM orders FOR UPDATE)"),
            "");
}

TEST_F(PostgresProjections, AreHaltedIfTheirFunctionsAddEvents) {
  run_sql(test::sql_that_makes_forge);
  Projections projections{store};
  projections.add(Totals<1>{
      [](ReadModel& model, const StoredEvent&) { model.value<std::string>("SELECT forge()"); }});
  projections.add(test::Counts{});
  place(store, "1");

  EXPECT_EQ(Runner{projections}.run_once().stopped, 1);

  for (const ProjectorStatus& status : ProjectionOperations{store}.status()) {
    const bool is_good = status.name == "counts";
    EXPECT_EQ(status.position.value(), is_good ? 1 : 0);
    EXPECT_THAT(status.error, HasSubstr(is_good ? "" : "it writes 'events'"));
  }
  place(store, "2");
}

TEST_F(PostgresProjections, AreReadAndNotWrittenByOthers) {
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();

  store.transact([](Transaction& transaction) {
    Sql sql{transaction};
    EXPECT_EQ(sql.value<std::string>("SELECT id FROM orders"), "1");
    for (const char* const table : {"orders", "\"totals@1.orders\"", "\"stela/totals@1\".orders"}) {
      EXPECT_THAT(message_of<UsageError>([&] { sql.execute("DELETE FROM " + std::string{table}); }),
                  HasSubstr("it writes 'orders', and that table is Stela's"))
          << table;
    }
  });
  ModelReader reader{store};
  for (const char* const sql : {"DELETE FROM orders", "BEGIN", "", "SET work_mem = '1MB'",
                                "WITH gone AS (DELETE FROM orders RETURNING id) TABLE gone",
                                "SELECT * INTO more FROM orders"}) {
    EXPECT_THAT(message_of<UsageError>([&] { reader.query(sql); }), HasSubstr("doesn't only read"))
        << sql;
  }
  EXPECT_THAT(message_of<UsageError>([&] { reader.query("SELECT 1; SELECT 2"); }),
              HasSubstr("isn't one statement"));
  EXPECT_EQ(reader.value<int>("SELECT count(*) FROM orders WHERE id = ?1", "1"), 1);
}

TEST_F(PostgresProjections, AreHaltedWhenTheirTablesWereAltered) {
  Projections projections{store};
  projections.add(Totals<1>{});
  for (const char* const sql :
       {"DROP VIEW stela.orders", "DROP TABLE \"stela/totals@2\".orders CASCADE",
        "ALTER TABLE \"stela/totals@3\".orders ADD COLUMN more text",
        "DROP INDEX \"stela/totals@4\".orders_by_customer",
        "CREATE INDEX extra ON \"stela/totals@5\".orders (cents)"}) {
    run_sql(sql);
    EXPECT_EQ(Runner{projections}.run_once().stopped, 1) << sql;
    EXPECT_THAT(ProjectionOperations{store}.status().back().error,
                HasSubstr("altered or dropped by hand"))
        << sql;
    Replayer{projections}.run();
  }
  place(store, "1");
  Runner{projections}.run_once();
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -"));
}

/// As Totals<1>, with another column.
class Wide {
 public:
  static constexpr ProjectorType projector_type{"totals", 2};
  using Events = EventSet<test::OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {orders} (place TEXT, id TEXT PRIMARY KEY)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {orders} VALUES ('x', ?1)", e.stream().key());
  }
};

TEST_F(PostgresProjections, KeepWhoMayReadThemThroughARebuild) {
  {
    Projections projections{store};
    projections.add(Totals<1>{});
    run_sql(
        "CREATE ROLE reader; GRANT USAGE ON SCHEMA stela TO reader; "
        "GRANT SELECT ON stela.orders TO reader");
    Replayer{projections}.run();
    run_sql("SET ROLE reader; SELECT * FROM stela.orders");
  }
  Projections projections{store};
  projections.add(Wide{});
  place(store, "1");
  Runner{projections}.run_once();
  run_sql("SET ROLE reader; SELECT place FROM stela.orders");
  EXPECT_THAT(orders_in(store), ElementsAre("x 1"));
}

TEST_F(PostgresProjections, SayWhatKeepsAViewFromBeingTurned) {
  {
    Projections projections{store};
    projections.add(Totals<1>{});
  }
  run_sql("CREATE VIEW report AS SELECT cents FROM stela.orders");
  Projections projections{store};
  projections.add(Wide{});
  EXPECT_EQ(Runner{projections}.run_once().stopped, 1);
  EXPECT_THAT(ProjectionOperations{store}.status().back().error,
              HasSubstr("other objects of the database depend on it"));
}

TEST_F(PostgresProjections, OfTwoStoresShareNoTable) {
  Store shop = postgres::open(server.url(), {.schema = "shop"});
  int cents = 0;
  for (Store* const one : {&store, &shop}) {
    const std::string rate = std::to_string(++cents);
    one->transact([&](Transaction& transaction) {
      Sql{transaction}.execute("CREATE TABLE rates AS SELECT " + rate + " AS cents");
    });
    Projections projections{*one};
    projections.add(Totals<1>{[&](ReadModel& model, const StoredEvent&) {
      EXPECT_EQ(model.value<int>("SELECT cents FROM rates"), cents);
    }});
    place(*one, rate);
    Runner{projections}.run_once();
    Replayer{projections}.run();
    EXPECT_THAT(orders_in(*one), ElementsAre(rate + " jane 100 0 -"));
    EXPECT_EQ(ModelReader{*one}.value<int>("SELECT cents FROM rates"), cents);
  }
}

TEST_F(PostgresProjections, TakeOverOnceALongReaderHasEnded) {
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();
  Store reading = postgres::open(server.url(), {.schema = "reader"});
  std::atomic<bool> is_reading = false;
  std::atomic<bool> may_end = false;
  std::jthread reader{[&] {
    reading.transact([&](Transaction& transaction) {
      Sql{transaction}.query("SELECT * FROM stela.orders");
      is_reading = true;
      is_reading.notify_all();
      may_end.wait(false);
    });
  }};
  is_reading.wait(false);
  std::jthread rebuild{[&] { Replayer{projections}.run(); }};
  // Appends come through meanwhile, and so do other readers.
  for (int i = 2; standing(store).size() < 2 || i < 20; ++i) {
    place(store, std::to_string(i));
    EXPECT_FALSE(orders_in(store).empty());
  }
  EXPECT_EQ(standing(store).at(0).substr(0, 18), "totals@1 v1 living");
  may_end = true;
  may_end.notify_all();
  rebuild.join();
  EXPECT_THAT(standing(store).at(1), HasSubstr("totals@2 v1 living"));
}

class LongNames {
 public:
  static constexpr ProjectorType projector_type{
      "a_projector_with_a_name_of_sixty_four_characters_as_long_as_can_", 1};
  using Events = EventSet<test::OrderPlaced>;
  explicit LongNames(std::string table) : table_{std::move(table)} {}

  void create(ReadModel& model) { model.execute("CREATE TABLE {" + table_ + "} (id TEXT)"); }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {" + table_ + "} VALUES (?1)", e.stream().key());
  }

 private:
  std::string table_;
};

TEST_F(PostgresProjections, ShortenNamesThatAreTooLong) {
  Projections projections{store};
  EXPECT_THAT(message_of<UsageError>([&] { projections.add(LongNames{std::string(64, 'x')}); }),
              HasSubstr("has 64 bytes; PostgreSQL takes 63"));
  projections.add(LongNames{"long_ones"});
  place(store, "1");
  Runner{projections}.run_once();
  Replayer{projections}.run();
  EXPECT_THAT(test::lines(ModelReader{store}.query("SELECT id FROM long_ones")), ElementsAre("1"));
}

TEST_F(PostgresProjections, ProjectEachEventOnceThoughTheServerCrashes) {
  Projections projections{store};
  projections.add(test::Counts{});
  std::jthread running{[&](std::stop_token stop) {
    Runner{projections, {.idle_backoff = 10ms}}.run(stop);
  }};
  for (int i = 0; i < 100; ++i) place(store, std::to_string(i));
  ASSERT_TRUE(projections.wait_for("counts", GlobalSequence{1}, 30s));
  server.crash();
  server.start_again();
  for (int i = 100; i < 200; ++i) place_after_all(std::to_string(i));
  ASSERT_TRUE(projections.wait_for("counts", GlobalSequence{200}, 30s));
  running = {};
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT n FROM counts"), 200);
}

TEST_F(PostgresProjections, GoOnAfterAnOutageAndStopInOne) {
  TroubleLog log;
  Store patient = postgres::open(server.url(), {.busy_timeout = 200ms, .log = &log});
  Projections projections{patient};
  projections.add(test::Counts{});
  std::jthread running{[&](std::stop_token stop) {
    Runner{projections, {.idle_backoff = 10ms}}.run(stop);
  }};
  place(store, "1");
  ASSERT_TRUE(projections.wait_for("counts", GlobalSequence{1}, 30s));
  server.crash();
  // Longer than the store waits for a server.
  ASSERT_TRUE(test::eventually([&] { return log.troubles >= 5; }));
  server.start_again();
  place_after_all("2");
  EXPECT_TRUE(test::eventually(
      [this] { return ModelReader{store}.value<int>("SELECT n FROM counts") == 2; }));
  server.crash();
  const int seen = log.troubles;
  ASSERT_TRUE(test::eventually([&] { return log.troubles > seen; }));
  running = {};
}

/// Notes each order, and ends the transaction with that of order 2.
class EndsTheTransaction {
 public:
  static constexpr ReactionType reaction_type{"ends"};
  using Events = EventSet<test::OrderPlaced>;
  explicit EndsTheTransaction(std::string end) : end_{std::move(end)} {}

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    unit.append(StreamId::of("seen", std::string{placed.stream().key()}), ExpectedVersion::any(),
                test::OrderShipped{"dhl"});
    if (placed.stream().key() != "2") return;
    unit.in_transaction([this](Transaction& transaction) {
      PQclear(PQexec(postgres::handle(transaction), end_.c_str()));
    });
  }

 private:
  std::string end_;
};

class PostgresReaction : public PostgresProjections {
 protected:
  void react(const std::string& end, OnError on_error) {
    Projections projections{store};
    projections.add_reaction(
        EndsTheTransaction{end},
        {.handling = {.on_error = on_error, .max_attempts = 3, .retry_backoff = 1ms}});
    for (const char* const key : {"1", "2", "3"}) place(store, key);
    Runner runner{projections};
    EXPECT_TRUE(test::eventually([&] {
      runner.run_once();
      const auto status = ProjectionOperations{store}.status().at(0);
      return status.stopped || status.parked > 0;
    }));
    for (int i = 0; i < 3; ++i) runner.run_once();
  }
  std::vector<std::string> seen() {
    std::vector<std::string> all;
    for (const StoredEvent& event : store.read_all({.event_types = {"order.shipped"}})) {
      all.push_back(event.stream.name());
    }
    return all;
  }
};

TEST_F(PostgresReaction, ThatCommitsOnTheLentConnectionHaltsAndRepeatsNothing) {
  react("COMMIT", OnError::stop);
  EXPECT_THAT(seen(), ElementsAre("seen-1", "seen-2"));
  EXPECT_THAT(standing(store), ElementsAre("ends@1 v1 living 1 stopped at 2"));
  EXPECT_THAT(ProjectionOperations{store}.status().at(0).error,
              HasSubstr("what it did before that may be committed"));
}

TEST_F(PostgresReaction, ThatCommitsAndBeginsOnTheLentConnectionParksAndRepeatsNothing) {
  react("COMMIT; BEGIN", OnError::park);
  EXPECT_THAT(seen(), ElementsAre("seen-1", "seen-2", "seen-3"));
  const auto parked = ProjectionOperations{store}.parked("ends");
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked.front().attempts, 1);
  EXPECT_THAT(parked.front().error, HasSubstr("what it did before that may be committed"));
}

TEST_F(PostgresReaction, ThatRollsBackOnTheLentConnectionIsTriedAgain) {
  react("ROLLBACK", OnError::park);
  EXPECT_THAT(seen(), ElementsAre("seen-1", "seen-3"));
  EXPECT_EQ(ProjectionOperations{store}.parked("ends").at(0).attempts, 3);
}

TEST_F(PostgresProjections, FollowAppendsOfSeveralProcessesInline) {
  constexpr int processes = 3;
  constexpr int each = 40;
  {
    Projections projections{store};
    projections.add_inline(test::Counts{});
  }
  std::vector<std::jthread> appending;
  for (int i = 0; i < processes; ++i) {
    appending.emplace_back([&, i] {
      Store own = postgres::open(server.url());
      Projections projections{own};
      projections.add_inline(test::Counts{});
      for (int k = 0; k < each; ++k) place(own, std::to_string(i * each + k));
    });
  }
  appending.clear();
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT n FROM counts"), processes * each);
  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 120"));
}

}  // namespace
}  // namespace stela::postgres_test
