// What a projector's statements cost on PostgreSQL when they come again, and what must not change.
#include "projections/models.hpp"
#include "support/histories.hpp"
#include "support/pooler.hpp"
#include "support/postgres_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stela::postgres_statements_test {
namespace {

using test::orders_in;
using test::place;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PostgresProjectorStatements : public ::testing::Test {
 protected:
  using Work = std::function<void(ReadModel&)>;

  /// Each event's handler does this first. Throws if a handler fails.
  void handle(Store& store, int orders, const Work& work) {
    Projections projections{store};
    projections.add(Totals<1>{[&](ReadModel& model, const StoredEvent&) { work(model); }},
                    {.max_attempts = 1});
    for (int i = 0; i < orders; ++i) {
      place(store, std::to_string(++orders_));
      Runner{projections}.run_once();
    }
    for (const auto& status : ProjectionOperations{store}.status()) {
      EXPECT_EQ(status.error, "");
    }
  }
  static int prepared(ReadModel& model) {
    return model
        .value<int>("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'stela_user%'")
        .value_or(-1);
  }

  test::PostgresServer server;

 private:
  int orders_ = 0;
};

TEST_F(PostgresProjectorStatements, ArePreparedWhenTheyComeAgain) {
  Store store = postgres::open(server.url());
  std::vector<int> counts;
  handle(store, 3, [&](ReadModel& model) { counts.push_back(prepared(model)); });
  // The text that counts, and from the third event on the one that inserts.
  EXPECT_THAT(counts, ElementsAre(0, 1, 2));
}

TEST_F(PostgresProjectorStatements, AreOfTheirOwnBuildOnly) {
  Store store = postgres::open(server.url());
  for (int round = 0; round < 2; ++round) {
    handle(store, 3, [&](ReadModel&) {});
    Projections projections{store};
    projections.add(Totals<1>{});
    Replayer{projections}.run();
    EXPECT_EQ(orders_in(store).size(), 3U * static_cast<std::size_t>(round + 1));
  }
}

TEST_F(PostgresProjectorStatements, SeeATableThatWasAlteredInBetween) {
  Store store = postgres::open(server.url());
  test::run_on(server, "CREATE TABLE public.rates (cents integer); INSERT INTO rates VALUES (7)");
  std::vector<std::size_t> columns;
  const Work look = [&](ReadModel& model) {
    const Rows rows = model.query("SELECT * FROM rates WHERE cents = ?1", 7);
    columns.push_back(rows.columns().size());
  };
  handle(store, 3, look);
  EXPECT_THAT(columns, ElementsAre(1, 1, 1));
  test::run_on(server, "ALTER TABLE public.rates ADD COLUMN since text");
  columns.clear();
  handle(store, 2, look);
  // The statement is no longer what was prepared, and the handler runs again.
  EXPECT_EQ(columns.back(), 2U);
  EXPECT_EQ(orders_in(store).size(), 5U);
  test::run_on(server, "ALTER TABLE public.rates ALTER COLUMN cents TYPE text");
  handle(store, 1, [&](ReadModel& model) {
    EXPECT_EQ(model.value<std::string>("SELECT cents FROM rates"), "7");
  });
}

TEST_F(PostgresProjectorStatements, TakeParametersOfOtherTypesEachTime) {
  Store store = postgres::open(server.url());
  const auto text_of = [](ReadModel& model, const auto& value) {
    return model.value<std::string>("SELECT ?1 || ''", value);
  };
  handle(store, 3, [&](ReadModel& model) {
    EXPECT_EQ(text_of(model, 7), "7");
    EXPECT_EQ(text_of(model, "seven"), "seven");
    EXPECT_EQ(text_of(model, 7), "7");
    EXPECT_EQ(model.value<std::optional<int>>("SELECT ?1 + 1", std::optional<int>{}), std::nullopt);
    EXPECT_EQ(model.value<std::optional<int>>("SELECT ?1 + 1", 1), 2);
  });
}

TEST_F(PostgresProjectorStatements, ArePreparedUpToABound) {
  Store store = postgres::open(server.url());
  constexpr int texts = 1000;
  int most = 0;
  handle(store, 2, [&](ReadModel& model) {
    for (int i = 0; i < texts; ++i) {
      const std::string sql = "SELECT ?1 + " + std::to_string(i);
      for (int again = 0; again < 2; ++again) ASSERT_EQ(model.value<int>(sql, again), i + again);
    }
    most = prepared(model);
  });
  EXPECT_GT(most, 100);
  EXPECT_LE(most, 256);
}

TEST_F(PostgresProjectorStatements, ArePreparedAgainAfterOneWasRefused) {
  Store store = postgres::open(server.url());
  int refused = 0;
  handle(store, 4, [&](ReadModel& model) {
    try {
      model.execute("INSERT INTO {orders} VALUES ('1', '', 0, 0, NULL)");
    } catch (const UniquenessViolated&) {
      ++refused;
    }
    model.execute("DELETE FROM {orders} WHERE id = '1' AND customer = ''");
  });
  EXPECT_GE(refused, 3);
  EXPECT_EQ(orders_in(store).size(), 4U);
}

TEST_F(PostgresProjectorStatements, AreNotPreparedBehindAPooler) {
  const test::Pooler pooler{server};
  Store store = postgres::open(pooler.conninfo());
  std::vector<int> counts;
  handle(store, 4, [&](ReadModel& model) { counts.push_back(prepared(model)); });
  EXPECT_THAT(counts, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(orders_in(store).size(), 4U);
}

}  // namespace
}  // namespace stela::postgres_statements_test
