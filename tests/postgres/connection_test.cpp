// A connection to PostgreSQL, its statements and its pipelines.
#include "database/postgres/connection.hpp"
#include "support/messages.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace stela::postgres::connection_test {
namespace {

using test::message_of;
using test::PostgresServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// As the compiler of statements makes them.
struct Echo {
  std::int64_t number;
  std::optional<std::string_view> text;
  std::string_view bytes;

  static constexpr std::string_view sql =
      "SELECT ?1::bigint + 1, ?2::text, ?3::bytea, ?2::text IS NULL";
  void bind(database::Query& query) const {
    query.bind(1, number);
    text ? query.bind(2, *text) : query.bind(2, nullptr);
    query.bind_blob(3, bytes);
  }
  using Row = database::Query;
};

struct Insert {
  std::int64_t from;
  std::int64_t to;

  static constexpr std::string_view sql = "INSERT INTO numbers SELECT generate_series(?1, ?2)";
  void bind(database::Query& query) const { query.bind(1, from).bind(2, to); }
};

class PostgresConnection : public ::testing::Test {
 protected:
  ConnectionOptions options(bool is_pooled = false) const {
    return {.conninfo = server.url(), .is_pooled = is_pooled};
  }

  PostgresServer server;
};

TEST_F(PostgresConnection, TakesAndGivesValuesAsTheyAre) {
  for (const bool is_pooled : {false, true}) {
    Connection own{options(is_pooled)};
    database::Connection& connection = own;
    const std::string zeros{"a\0b\xff", 4};
    for (const bool is_null : {true, false, true}) {
      auto rows = connection.rows(
          Echo{.number = std::int64_t{1} << 40,
               .text = is_null ? std::nullopt : std::optional<std::string_view>{"ünï"},
               .bytes = zeros});
      ASSERT_TRUE(rows.step());
      EXPECT_EQ(rows.integer(0), (std::int64_t{1} << 40) + 1);
      EXPECT_EQ(rows.text(1), is_null ? "" : "ünï");
      EXPECT_EQ(rows.is_null(1), is_null);
      EXPECT_EQ(rows.blob(2), zeros);
      EXPECT_EQ(rows.boolean(3), is_null);
      EXPECT_FALSE(rows.step());
    }
  }
}

TEST_F(PostgresConnection, PreparesWhatComesAgainButBehindAPooler) {
  constexpr std::string_view text = "SELECT $1::bigint + 1";
  for (const bool is_pooled : {false, true}) {
    Connection connection{options(is_pooled)};
    const auto next = [&](std::int64_t number) {
      Parameters parameters;
      parameters.add(number);
      return parameters;
    };
    // Again, if it takes so long meanwhile that they are planned anew.
    EXPECT_TRUE(test::eventually([&] {
      for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(connection.query(text, next(i)).integer(0, 0), i + 1);
      }
      Connection::Pipeline pipeline{connection};
      for (std::int64_t i = 0; i < 3; ++i) {
        pipeline.add(text, next(i));
        pipeline.add("SELECT $1::bigint + 2", next(i));
      }
      const auto results = pipeline.run_all("adding");
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(results.at(2 * i).integer(0, 0), static_cast<std::int64_t>(i) + 1);
        EXPECT_EQ(results.at(2 * i + 1).integer(0, 0), static_cast<std::int64_t>(i) + 2);
      }
      const Result prepared = connection.query(
          "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%$1::bigint%'");
      return prepared.integer(0, 0) == (is_pooled ? 0 : 2);
    }));
  }
}

TEST_F(PostgresConnection, AStatementThatCannotBePreparedFailsInItsPlace) {
  Connection connection{options()};
  connection.execute("CREATE TABLE numbers (n bigint)");
  const auto run = [&] {
    Connection::Pipeline pipeline{connection};
    pipeline.add("SELECT 1");
    pipeline.add("SELECT count(*) FROM numbers");
    pipeline.add("SELECT 3");
    return pipeline.run();
  };
  EXPECT_FALSE(run().at(1).is_error());
  connection.execute("DROP TABLE numbers");
  for (int i = 0; i < 3; ++i) {
    const auto results = run();
    ASSERT_THAT(results, SizeIs(3));
    EXPECT_FALSE(results[0].is_error());
    EXPECT_EQ(state_of(results[1].get()), "42P01");
    EXPECT_EQ(results[2].status(), PGRES_PIPELINE_ABORTED);
  }
  connection.execute("CREATE TABLE numbers (n bigint)");
  EXPECT_EQ(run().at(2).integer(0, 0), 3);
}

TEST_F(PostgresConnection, IsGivenUpWhenSqlHasDroppedWhatWasPrepared) {
  std::string said;
  // Again, if it takes so long meanwhile that it is planned anew.
  EXPECT_TRUE(test::eventually([&] {
    const ConnectionOptions same = options();
    Connection connection{same};
    for (int i = 0; i < 2; ++i) connection.query("SELECT 1");
    connection.execute("DEALLOCATE ALL");
    try {
      connection.query("SELECT 1");
    } catch (const StoreBusy& e) {
      said = e.what();
    }
    if (connection.is_usable()) return false;
    // Those that follow it aren't hurt by the same SQL.
    Connection next{same};
    for (int i = 0; i < 3; ++i) {
      next.query("SELECT 1");
      next.execute("DEALLOCATE ALL");
    }
    return next.is_usable();
  }));
  EXPECT_THAT(said, HasSubstr("has dropped what was prepared"));
}

TEST_F(PostgresConnection, IsGivenUpWhenSqlHasPreparedWhatItWouldPrepare) {
  const ConnectionOptions same = options();
  Connection connection{same};
  connection.execute("PREPARE stela_own_1 AS SELECT 2; PREPARE stela_own_2 AS SELECT 2");
  connection.query("SELECT 1");
  EXPECT_THAT(message_of<StoreBusy>([&] { connection.query("SELECT 1"); }),
              HasSubstr("has prepared a statement of that name"));
  EXPECT_FALSE(connection.is_usable());
  Connection next{same};
  for (int i = 0; i < 3; ++i) next.query("SELECT 1");
  EXPECT_EQ(next.query("SELECT count(*) FROM pg_prepared_statements").integer(0, 0), 0);
}

TEST_F(PostgresConnection, PlansAnewWhatItPreparedWhileATableWasSmall) {
  Connection connection{options()};
  connection.execute(
      "CREATE TABLE numbers (n bigint PRIMARY KEY) WITH (autovacuum_enabled = off); "
      "INSERT INTO numbers VALUES (1); ANALYZE numbers");
  const auto find = [&] {
    Parameters number;
    number.add(std::int64_t{1});
    connection.query("SELECT n FROM numbers WHERE n = $1", std::move(number));
  };
  const auto scans = [&] {
    connection.execute("SELECT pg_stat_force_next_flush()");
    return connection.query("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'numbers'")
        .integer(0, 0);
  };
  for (int i = 0; i < 10; ++i) find();
  EXPECT_GE(scans(), 10);
  connection.execute("INSERT INTO numbers SELECT generate_series(2, 50000)");
  EXPECT_TRUE(test::eventually([&] {
    const std::int64_t before = scans();
    for (int i = 0; i < 10; ++i) find();
    return scans() == before;
  }));
  const Result prepared = connection.query(
      "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT n FROM%'");
  EXPECT_EQ(prepared.integer(0, 0), 1);
}

TEST_F(PostgresConnection, BeginsATransactionInAPipelineThatPlansAnew) {
  Connection connection{options()};
  const auto run = [&] {
    Connection::Pipeline pipeline{connection};
    pipeline.add("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE NOT DEFERRABLE");
    pipeline.add("SELECT 1");
    pipeline.add("COMMIT");
    EXPECT_EQ(pipeline.run_all("a transaction").at(1).integer(0, 0), 1);
  };
  const auto newest = [&] {
    Connection::Pipeline pipeline{connection};
    pipeline.add(
        "SELECT count(*), max(substr(name, 11)::bigint) FROM pg_prepared_statements "
        "WHERE statement IN ('SELECT 1', 'COMMIT')");
    const auto results = pipeline.run_all("looking at what is prepared");
    // Old ones are dropped.
    EXPECT_LE(results[0].integer(0, 0), 2);
    return results[0].integer(0, 1);
  };
  for (int i = 0; i < 3; ++i) run();
  const std::int64_t first = newest();
  EXPECT_TRUE(test::eventually([&] {
    run();
    return newest() > first + 4;
  }));
}

TEST_F(PostgresConnection, PreparesAnewWhatHasAnotherResult) {
  Connection connection{options()};
  connection.execute("CREATE TABLE numbers (n bigint); INSERT INTO numbers VALUES (1)");
  int columns = 1;
  // Again, if it takes so long meanwhile that it is planned anew.
  EXPECT_TRUE(test::eventually([&] {
    for (int i = 0; i < 3; ++i) connection.query("SELECT * FROM numbers");
    connection.execute("ALTER TABLE numbers ADD COLUMN m" + std::to_string(++columns) +
                       " bigint DEFAULT 2");
    try {
      connection.query("SELECT * FROM numbers");
    } catch (const StoreFailed&) {
      return true;
    }
    return false;
  }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(connection.query("SELECT * FROM numbers").columns(), columns);
  }
}

TEST_F(PostgresConnection, CountsTheRowsThatAStatementChanges) {
  Connection own{options()};
  database::Connection& connection = own;
  connection.execute("CREATE TABLE numbers (n bigint PRIMARY KEY)");
  EXPECT_EQ(connection.run(Insert{1, 100}), 100);
  connection.execute("BEGIN");
  EXPECT_TRUE(connection.in_transaction());
  EXPECT_THROW(connection.run(Insert{100, 101}), UniquenessViolated);
  EXPECT_TRUE(connection.in_transaction());
  own.roll_back();
  EXPECT_FALSE(connection.in_transaction());
  EXPECT_EQ(connection.run(Insert{101, 101}), 1);
}

TEST_F(PostgresConnection, RunsAPipelineUpToItsFirstError) {
  Connection connection{options()};
  Connection::Pipeline pipeline{connection};
  pipeline.add("SELECT 1");
  pipeline.add("SELECT 1 / 0");
  pipeline.add("SELECT 3");
  const auto results = pipeline.run();

  ASSERT_THAT(results, SizeIs(3));
  EXPECT_EQ(results[0].integer(0, 0), 1);
  EXPECT_EQ(state_of(results[1].get()), "22012");
  EXPECT_EQ(results[2].status(), PGRES_PIPELINE_ABORTED);
  EXPECT_EQ(connection.query("SELECT 4").integer(0, 0), 4);
}

TEST_F(PostgresConnection, PassesArraysAndLargeValuesInBothDirections) {
  Connection connection{options()};
  Array numbers = Array::of_int8();
  Array texts = Array::of_text();
  Array nothing = Array::of_bytes();
  for (int i = 0; i < 1000; ++i) numbers.add(i - 500);
  texts.add_bytes("a");
  texts.add_null();
  const std::string large(20'000'000, 'x');
  Connection::Pipeline pipeline{connection};
  for (int i = 0; i < 3; ++i) pipeline.add("SELECT $1::text", Parameters{}.add(large));
  pipeline.add("SELECT sum(n)::bigint FROM unnest($1) AS n", Parameters{}.add(numbers));
  pipeline.add("SELECT count(*), count(t) FROM unnest($1) AS t", Parameters{}.add(texts));
  pipeline.add("SELECT cardinality($1)", Parameters{}.add(nothing));
  const auto results = pipeline.run_all("the test");

  EXPECT_EQ(results[2].bytes(0, 0), large);
  EXPECT_EQ(results[3].integer(0, 0), -500);
  EXPECT_EQ(results[4].integer(0, 0), 2);
  EXPECT_EQ(results[4].integer(0, 1), 1);
  EXPECT_EQ(results[5].integer(0, 0), 0);
}

TEST_F(PostgresConnection, CollectsWarnings) {
  Connection connection{options()};
  connection.query("COMMIT");
  EXPECT_THAT(connection.take_warnings(), ElementsAre("there is no transaction in progress"));
  connection.query("SELECT 1");
  EXPECT_THAT(connection.take_warnings(), SizeIs(0));
}

TEST_F(PostgresConnection, WaitsNotForEverForASilentServer) {
  ConnectionOptions impatient = options();
  impatient.reply_timeout = std::chrono::milliseconds{1500};
  Connection connection{impatient};
  const auto pid = static_cast<pid_t>(connection.query("SELECT pg_backend_pid()").integer(0, 0));
  ::kill(pid, SIGSTOP);
  EXPECT_THAT(message_of<ConnectionLost>([&] { connection.query("SELECT 1"); }),
              HasSubstr("the server said nothing for 1500 ms"));
  EXPECT_FALSE(connection.is_usable());
  EXPECT_THROW(connection.query("SELECT 1"), ConnectionLost);
  ::kill(pid, SIGCONT);
}

TEST_F(PostgresConnection, IsLostWhenTheServerEndsIt) {
  for (const bool in_pipeline : {false, true}) {
    Connection connection{options()};
    const auto end = [&] {
      Connection::Pipeline pipeline{connection};
      pipeline.add("SELECT pg_terminate_backend(pg_backend_pid())");
      pipeline.add("SELECT 1");
      if (in_pipeline) pipeline.run_all("the test");
      if (!in_pipeline) connection.query("SELECT pg_terminate_backend(pg_backend_pid())");
    };
    EXPECT_THROW(end(), ConnectionLost);
    EXPECT_FALSE(connection.is_usable());
  }
}

TEST_F(PostgresConnection, IsLeftAloneByAForkedChild) {
  Connection connection{options()};
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      connection.query("SELECT 1");
    } catch (const UsageError&) {
      status = 0;
    }
    connection.~Connection();
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(connection.query("SELECT 1").integer(0, 0), 1);
}

}  // namespace
}  // namespace stela::postgres::connection_test
