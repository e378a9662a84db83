// The user's SQL in a transaction of the events on PostgreSQL: what only this engine has.
#include "database/database.hpp"
#include "database/postgres/connection.hpp"
#include "database/postgres/user_statement.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/orders.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres_handle.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace stela::postgres::user_sql_test {
namespace {

using namespace std::chrono_literals;
using test::append;
using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PostgresSql : public ::testing::Test {
 protected:
  PostgresSql() { run("CREATE TABLE limits (account text PRIMARY KEY, used integer)"); }

  void run(std::string_view statement) {
    store.transact([&](Transaction& transaction) { Sql{transaction}.execute(statement); });
  }
  std::string refusal_of(std::string_view statement) {
    return message_of<UsageError>([&] { run(statement); });
  }
  std::string limits() {
    const Result found =
        outside.query("SELECT coalesce(string_agg(account, ' ' ORDER BY account), '') FROM limits");
    return std::string{found.bytes(0, 0)};
  }

  test::PostgresServer server;
  Store store = postgres::open(server.url());
  Connection outside{{.conninfo = server.url() + "&options=-csearch_path%3Dstela_app"}};
};

TEST_F(PostgresSql, WritesNoTableThatAStoreIsMadeWith) {
  const Result tables = outside.query(
      "SELECT c.relname::text FROM pg_class AS c "
      "WHERE c.relnamespace = 'stela'::regnamespace AND c.relkind = 'r'");
  EXPECT_GT(tables.rows(), 8);
  for (int i = 0; i < tables.rows(); ++i) {
    const std::string name{tables.bytes(i, 0)};
    EXPECT_THAT(refusal_of("DELETE FROM stela." + name),
                HasSubstr("it writes '" + name + "', and that table is Stela's"));
  }
}

TEST_F(PostgresSql, ATriggerOfTheUsersWritesNoTableOfStelas) {
  outside.execute(
      "CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN DELETE FROM stela.append_ids; RETURN NULL; END $$; "
      "CREATE TRIGGER forged AFTER INSERT ON limits EXECUTE FUNCTION forge()");

  EXPECT_THAT(refusal_of("INSERT INTO limits VALUES ('ada', 1)"),
              HasSubstr("it writes 'append_ids', and that table is Stela's"));
  EXPECT_EQ(limits(), "");
}

TEST_F(PostgresSql, MakesAndDropsNothingOfStelas) {
  for (const std::string_view sql :
       {"DROP TABLE stela.events", "ALTER TABLE \"stela\".events ADD COLUMN a integer",
        "CREATE INDEX mine ON stela.events (version)", "CREATE TABLE stela.mine (a integer)",
        "DROP SCHEMA stela CASCADE"}) {
    EXPECT_THAT(refusal_of(sql), HasSubstr("in the schema of Stela's tables")) << sql;
  }
  // Nor of another store's.
  postgres::open(server.url(), {.schema = "alpha"});
  for (const std::string_view sql :
       {"DROP TABLE alpha.snapshots", "ALTER TABLE alpha.events DISABLE TRIGGER ALL",
        "DROP SCHEMA \"alpha\" CASCADE"}) {
    EXPECT_THAT(refusal_of(sql), HasSubstr("of another store")) << sql;
  }
  EXPECT_THAT(refusal_of("DELETE FROM alpha.events"), HasSubstr("that table is Stela's"));
  // By its plain name it isn't found.
  EXPECT_THAT(refusal_of("DROP TABLE events"), HasSubstr("\"events\" does not exist"));
}

TEST_F(PostgresSql, PrefersTheTablesOfTheUser) {
  outside.execute("CREATE TABLE events (title text); INSERT INTO events VALUES ('a fair')");
  store.transact([](Transaction& transaction) {
    Sql sql{transaction};
    EXPECT_EQ(sql.value<std::string>("SELECT title FROM events"), "a fair");
    EXPECT_EQ(sql.value<int>("SELECT count(*) FROM stela.events"), 0);
    append(transaction, "order-1");
    EXPECT_EQ(sql.value<int>("SELECT count(*) FROM stela.events"), 1);
  });
}

TEST_F(PostgresSql, WaitsBrieflyForARowThatAnotherProgramHasLocked) {
  run("INSERT INTO limits VALUES ('ada', 1)");
  outside.execute("BEGIN; UPDATE limits SET used = 2");

  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of<StoreBusy>([&] { run("UPDATE limits SET used = 3"); }),
              HasSubstr("another session holds a lock"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);

  outside.execute("ROLLBACK");
  run("UPDATE limits SET used = 3");
}

TEST_F(PostgresSql, KeepsAReaderFastBesideManyStatements) {
  outside.execute("INSERT INTO limits SELECT 'a' || i, 0 FROM generate_series(1, 500) AS i");
  const auto time_of_reads = [&] {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) outside.query("SELECT sum(used) FROM limits");
    return std::chrono::steady_clock::now() - began;
  };
  store.transact([&](Transaction& transaction) {
    Sql sql{transaction};
    const auto write = [&](int statements) {
      const auto began = std::chrono::steady_clock::now();
      for (int i = 0; i < statements; ++i)
        sql.execute("UPDATE limits SET used = used + 1 WHERE account = 'a1'");
      return std::chrono::steady_clock::now() - began;
    };
    const auto first = write(50);
    const auto reads = time_of_reads();
    // More than the 64 savepoints that the server keeps beside each transaction.
    write(2000);
    EXPECT_LT(time_of_reads(), 10 * reads + 1s);
    EXPECT_LT(write(50), 10 * first + 1s);
  });
}

TEST_F(PostgresSql, LendsItsConnection) {
  store.transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    const Result done{
        PQexec(handle(transaction), "INSERT INTO stela_app.limits VALUES ('ada', 1)")};
    EXPECT_EQ(done.command(), "INSERT 0 1");
    append(transaction, "order-1");
  });
  EXPECT_EQ(limits(), "ada");

  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    const Result done{PQexec(handle(transaction), "DELETE FROM stela_app.limits")};
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  EXPECT_EQ(limits(), "ada");
}

TEST_F(PostgresSql, FailsIfAStatementOnTheLentConnectionFailed) {
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    const Result done{PQexec(handle(transaction), "INSERT INTO nowhere VALUES (1)")};
  }),
               StoreFailed);
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    const Result done{PQexec(handle(transaction), "INSERT INTO nowhere VALUES (1)")};
    Sql{transaction}.execute("INSERT INTO limits VALUES ('ada', 1)");
  }),
               StoreFailed);
  run("INSERT INTO limits VALUES ('eve', 1)");
  EXPECT_EQ(limits(), "eve");
}

TEST_F(PostgresSql, FailsIfTheLentConnectionsTransactionIsEnded) {
  for (const char* const end : {"COMMIT", "ROLLBACK", "COMMIT; BEGIN"}) {
    test::Order order = test::Order::place(Id<test::Order>::generate(), "jane", 100);
    const std::string message = message_of<UsageError>([&] {
      store.transact([&](Transaction& transaction) {
        Repository<test::Order>{transaction}.save(order);
        const Result done{PQexec(handle(transaction), end)};
      });
    });
    EXPECT_THAT(message, HasSubstr("the work ended the transaction that it was called in")) << end;
    EXPECT_THAT(message_of<UsageError>([&] { (void)order.version(); }), HasSubstr("in doubt"))
        << end;
  }
  append(store, "order-1");
}

TEST_F(PostgresSql, FailsIfTheLentConnectionsTransactionIsEndedBelowASavepoint) {
  for (const char* const end :
       {"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "COMMIT; BEGIN; SELECT 1 / 0"}) {
    for (const bool is_caught : {false, true}) {
      test::Order order = test::Order::place(Id<test::Order>::generate(), "jane", 100);
      test::Order late = test::Order::place(Id<test::Order>::from("late"), "jane", 100);
      const std::string message = message_of<UsageError>([&] {
        store.transact([&](Transaction& outer) {
          try {
            outer.transact([&](Transaction& inner) {
              Repository<test::Order>{inner}.save(order);
              const Result done{PQexec(handle(inner), end)};
            });
          } catch (const UsageError&) {
            if (!is_caught) throw;
          }
          Repository<test::Order>{outer}.save(late);
        });
      });
      EXPECT_THAT(message, HasSubstr("the work ended the transaction that it was called in"))
          << end;
      EXPECT_THAT(message_of<UsageError>([&] { (void)order.version(); }), HasSubstr("in doubt"))
          << end;
    }
  }
  EXPECT_EQ(server.ask("SELECT count(*) FROM stela.streams WHERE name = 'order-late'"), "0");
  append(store, "order-1");
}

TEST_F(PostgresSql, FailsWithTheEndOfItsTransactionWhateverItThrowsAfterThat) {
  EXPECT_THAT(message_of<UsageError>([&] {
                store.transact([&](Transaction& outer) {
                  outer.transact([](Transaction& inner) {
                    const Result done{PQexec(handle(inner), "COMMIT")};
                    throw StoreBusy{"try again"};
                  });
                });
              }),
              HasSubstr("the work ended the transaction that it was called in"));
}

TEST_F(PostgresSql, AppendsNothingOnceTheLentConnectionsTransactionIsEnded) {
  for (const char* const end : {"COMMIT", "COMMIT; BEGIN"}) {
    EXPECT_THROW(store.transact([&](Transaction& transaction) {
      append(transaction, "order-1");
      PGconn* const lent = handle(transaction);
      const Result ended{PQexec(lent, end)};
      EXPECT_THROW(append(transaction, "order-1"), UsageError);
      const Result again{PQexec(lent, "COMMIT")};
    }),
                 UsageError);
  }
  EXPECT_EQ(server.ask("SELECT count(*) FROM stela.events"), "2");
}

TEST_F(PostgresSql, IsNotBlamedForTheEndOfAServerThatWasLent) {
  EXPECT_THROW(store.transact([&](Transaction& outer) {
    outer.transact([&](Transaction& inner) {
      PGconn* const lent = handle(inner);
      server.crash();
      const Result lost{PQexec(lent, "SELECT 1")};
    });
  }),
               StoreBusy);
}

TEST_F(PostgresSql, SetsNothingForTheTransactionsAfterIt) {
  server.ask("CREATE ROLE other");
  const std::vector<std::string> names{"statement_timeout", "search_path", "DateStyle",
                                       "TimeZone",          "jit",         "role",
                                       "synchronous_commit"};
  const auto settings = [&] {
    std::string all;
    store.transact([&](Transaction& transaction) {
      for (const std::string& name : names) {
        const Result shown{PQexec(handle(transaction), ("SHOW " + name).c_str())};
        all.append(shown.bytes(0, 0)).append("; ");
      }
    });
    return all;
  };
  const std::string before = settings();
  run("SELECT set_config('statement_timeout', '1ms', false), "
      "set_config('search_path', 'nowhere', false), set_config('DateStyle', 'German', false)");
  run("SELECT set_config('TimeZone', 'Asia/Tokyo', false), set_config('jit', 'on', false)");
  EXPECT_EQ(settings(), before);
  store.transact([](Transaction& transaction) {
    for (const char* const sql : {"SET statement_timeout = '1ms'", "SET ROLE other"}) {
      const Result done{PQexec(handle(transaction), sql)};
      EXPECT_EQ(done.command(), "SET");
    }
  });
  EXPECT_EQ(settings(), before);
  EXPECT_THROW(store.transact([](Transaction& transaction) {
    const Result done{PQexec(handle(transaction), "COMMIT; SET statement_timeout = '1ms'; BEGIN")};
  }),
               UsageError);
  EXPECT_EQ(settings(), before);
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{1});
}

TEST_F(PostgresSql, ChangesNoEncodingThatEventsAreStoredIn) {
  EXPECT_THAT(refusal_of("SELECT set_config('client_encoding', 'LATIN1', false)"),
              HasSubstr("client_encoding was changed to 'LATIN1'"));
  EXPECT_THAT(message_of<UsageError>([&] {
                store.transact([](Transaction& transaction) {
                  const Result done{PQexec(handle(transaction), "SET client_encoding = LATIN1")};
                  append(transaction, "order-1");
                });
              }),
              HasSubstr("nothing was written"));
  append(store, "order-\xc3\xa9");
  EXPECT_EQ(server.ask("SELECT name FROM stela.streams"), "order-\xc3\xa9");
}

TEST_F(PostgresSql, OfAModuleSetsNothingForTheTransactionsAfterIt) {
  const UserStatement statement{.sql = "a projector's",
                                .text = "SELECT set_config('statement_timeout', '1ms', false)"};
  const auto write = [&](database::Connection& connection) {
    postgres::run(connection_of(connection), statement, nullptr);
  };
  const auto timeout = [](database::Connection& connection) {
    EXPECT_EQ(connection_of(connection).query_text("SHOW statement_timeout", {}).bytes(0, 0), "0");
  };
  for (const database::Sync sync : {database::Sync::none, database::Sync::as_stored}) {
    store.database().write_along(write, sync);
    store.database().write_along(timeout, sync);
    store.database().write(write, sync);
    store.database().write(timeout, sync);
  }
  store.database().read(write);
  store.database().read(timeout);
}

TEST_F(PostgresSql, FailsAtTheCommitIfItBreaksAKeyThatIsLeftToIt) {
  outside.execute(
      "CREATE TABLE entries (account TEXT CONSTRAINT owner REFERENCES limits DEFERRABLE INITIALLY "
      "DEFERRED)");
  const auto add_entry = [&](Transaction& transaction) {
    append(transaction, "order-1");
    Sql{transaction}.execute("INSERT INTO entries VALUES ('ada')");
  };

  try {
    store.transact(add_entry);
    FAIL() << "nothing was thrown";
  } catch (const ConstraintViolated& e) {
    EXPECT_EQ(e.constraint().name, "owner");
  }

  store.transact([&](Transaction& transaction) {
    add_entry(transaction);
    Sql{transaction}.execute("INSERT INTO limits VALUES ('ada', 1)");
  });
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresSql, WritesNothingOfStelasByATriggerAtTheCommit) {
  outside.execute(
      "CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN DELETE FROM stela.append_groups; RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER forged AFTER INSERT ON limits DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION forge()");
  append(store, "order-1");

  EXPECT_THAT(refusal_of("INSERT INTO limits VALUES ('ada', 1)"),
              HasSubstr("it writes 'append_groups', and that table is Stela's"));
  EXPECT_EQ(limits(), "");
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

/// Adds an event by itself.
std::string forging(std::string_view sequence, int stream = 77) {
  return "INSERT INTO stela.events VALUES (" + std::string{sequence} + ", " +
         std::to_string(stream) + ", 1, 0, 0, 0, 1, gen_random_uuid(), NULL, NULL, NULL, '')";
}
constexpr const char* next_sequence = "(SELECT coalesce(max(sequence), 0) + 1 FROM stela.events)";
constexpr const char* writes_events = "it writes 'events', and that table is Stela's";

TEST_F(PostgresSql, AddsNoEventsByItself) {
  append(store, "order-1");
  for (const char* const sequence : {next_sequence, "1000", "0", "-5"}) {
    EXPECT_THAT(refusal_of(forging(sequence)), HasSubstr(writes_events)) << sequence;
    EXPECT_THAT(message_of<UsageError>([&] {
                  store.transact([&](Transaction& transaction) {
                    append(transaction, "order-1");
                    Sql{transaction}.execute(forging(sequence));
                    Sql{transaction}.execute("INSERT INTO limits VALUES ('ada', 1)");
                  });
                }),
                HasSubstr(writes_events))
        << sequence;
    EXPECT_THAT(message_of<UsageError>([&] {
                  store.transact([&](Transaction& transaction) {
                    const Result done{PQexec(handle(transaction), forging(sequence).c_str())};
                    EXPECT_EQ(done.command(), "INSERT 0 1");
                  });
                }),
                HasSubstr(writes_events))
        << sequence;
  }
  EXPECT_EQ(limits(), "");
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

TEST_F(PostgresSql, AddsNoEventsBelowAnAppend) {
  append(store, "order-1");
  for (const char* const sequence : {next_sequence, "1000"}) {
    EXPECT_THAT(message_of<UsageError>([&] {
                  store.transact([&](Transaction& transaction) {
                    Sql{transaction}.execute(forging(sequence));
                    append(transaction, "order-1");
                  });
                }),
                HasSubstr("SQL of yours added an event after number 1"));
    // Though that is caught.
    EXPECT_THAT(message_of<UsageError>([&] {
                  store.transact([&](Transaction& transaction) {
                    Sql{transaction}.execute(forging(sequence));
                    EXPECT_THROW(append(transaction, "order-1"), UsageError);
                  });
                }),
                HasSubstr("SQL of yours added an event after number 1"));
  }
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

TEST_F(PostgresSql, TakesNoAppendBack) {
  append(store, "order-1");
  const auto take_back = [](Transaction& transaction) {
    PGconn* const own = handle(transaction);
    const Result marked{PQexec(own, "SAVEPOINT mine")};
    append(transaction, "order-1");
    const Result undone{PQexec(own, "ROLLBACK TO mine")};
    EXPECT_EQ(undone.command(), "ROLLBACK");
  };
  EXPECT_THAT(message_of<UsageError>([&] { store.transact(take_back); }),
              HasSubstr("or rolls back to a savepoint from before an append"));
  EXPECT_THAT(message_of<UsageError>([&] {
                store.transact([&](Transaction& transaction) {
                  take_back(transaction);
                  append(transaction, "order-1");
                });
              }),
              HasSubstr("rolled back to a savepoint from before the append of event 2"));
  // Though that is caught.
  EXPECT_THAT(message_of<UsageError>([&] {
                store.transact([&](Transaction& transaction) {
                  take_back(transaction);
                  EXPECT_THROW(append(transaction, "order-2"), UsageError);
                  EXPECT_THROW(append(transaction, "order-3"), UsageError);
                });
              }),
              HasSubstr("rolled back to a savepoint from before the append of event 2"));
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{2});
}

TEST_F(PostgresSql, AddsNoEventsByATriggerAtTheCommit) {
  outside.execute("CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
                  forging(next_sequence) +
                  "; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER forged AFTER INSERT ON limits "
                  "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION forge()");

  EXPECT_THAT(refusal_of("INSERT INTO limits VALUES ('ada', 1)"), HasSubstr(writes_events));
  EXPECT_EQ(limits(), "");
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{1});
}

TEST_F(PostgresSql, MayHaveAddedEventsInAPartThatWasRolledBack) {
  store.transact([&](Transaction& transaction) {
    append(transaction, "order-1");
    EXPECT_THROW(transaction.transact([&](Transaction& part) {
      Sql{part}.execute(forging(next_sequence));
      throw std::runtime_error{"no"};
    }),
                 std::runtime_error);
    append(transaction, "order-1");
  });
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{3});
}

TEST_F(PostgresSql, OfAModuleAddsNoEventsBesideOthersAppends) {
  append(store, "order-1");
  const auto writing = [&](const std::string& sql, bool has_savepoint) {
    return [this, sql, has_savepoint](database::Connection& connection) {
      const UserStatement statement{.sql = "a projector's", .text = sql};
      Connection& own = connection_of(connection);
      if (has_savepoint) {
        run_between_savepoints(own, statement, nullptr, nullptr);
      } else {
        postgres::run(own, statement, nullptr);
      }
      // It doesn't wait for a row that has its place.
      if (sql.find("limits") != std::string::npos || sql.find("1000") != std::string::npos) {
        std::jthread{[&] { append(store, "order-1"); }}.join();
      }
    };
  };
  for (const bool has_savepoint : {false, true}) {
    for (const char* const sequence : {next_sequence, "1000", "0"}) {
      EXPECT_THAT(message_of<UsageError>([&] {
                    store.database().write_apart(writing(forging(sequence), has_savepoint),
                                                 database::Sync::none);
                  }),
                  HasSubstr(writes_events))
          << sequence;
    }
    store.database().write_apart(
        writing("INSERT INTO stela_app.limits VALUES (gen_random_uuid(), 1)", has_savepoint),
        database::Sync::none);
  }
  EXPECT_EQ(append(store, "order-1").first, GlobalSequence{6});
}

TEST_F(PostgresSql, IsNotTakenForTheWriterOfAnOldEvent) {
  append(store, "order-1");
  // Of numbers that no transaction has had yet, a row may have one that has come round.
  EXPECT_EQ(server.ask("SELECT string_agg("
                       "stela.is_own_row(((x::text::bigint + d) & 4294967295)::text::xid)::text, "
                       "' ' ORDER BY d) FROM (SELECT pg_current_xact_id()::xid) AS o(x), "
                       "unnest(ARRAY[-5, 0, 5, 2000000000, 3000000000]) AS d"),
            "false true false false false");
}

TEST_F(PostgresSql, OfAnotherEngineIsNotLent) {
  Store other = sqlite::open_in_memory();
  other.transact([](Transaction& transaction) { EXPECT_THROW(handle(transaction), UsageError); });
}

}  // namespace
}  // namespace stela::postgres::user_sql_test
