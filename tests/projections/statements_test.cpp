// Statements of projectors that fail, and that their handlers go on after.
#include "projections/models.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace stela {
namespace {

using test::lines;
using test::OrderPlaced;
using test::place;
using test::standing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Does what it is told with each order.
class Told {
 public:
  static constexpr ProjectorType projector_type{"told", 1};
  using Events = EventSet<OrderPlaced>;
  using Deed = std::function<void(ReadModel&, const std::string&)>;

  explicit Told(Deed deed) : deed_{std::move(deed)} {}
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {customers} (name TEXT PRIMARY KEY)");
  }
  void project(ReadModel& model, const Recorded<OrderPlaced>& e) { deed_(model, e->customer); }

 private:
  Deed deed_;
};

/// Its second row is refused, and it doesn't mind.
void insert_if_new(ReadModel& model, const std::string& customer) {
  try {
    model.execute("INSERT INTO {customers} VALUES (?1)", customer);
  } catch (const UniquenessViolated&) {
  }
}

void misspell(ReadModel& model, const std::string&) {
  try {
    model.execute("INSERT INTO {costumers} VALUES (1)");
  } catch (const std::exception&) {
  }
}

std::vector<std::string> customers_in(Store& store) {
  return lines(ModelReader{store}.query("SELECT name FROM customers ORDER BY name"));
}

TEST(FailedStatement, OfAHandlerThatGoesOnIsLogged) {
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log});
  Projections projections{store};
  projections.add(Told{insert_if_new});
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  Runner{projections}.catch_up();

  EXPECT_THAT(standing(store), ElementsAre("told@1 v1 living 3"));
  EXPECT_THAT(customers_in(store), ElementsAre("jane"));
  EXPECT_THAT(log.entries(),
              ElementsAre(HasSubstr("warning projection.statement_failed projector=told version=1 "
                                    "problem=projector 'told' v1: \"INSERT INTO {customers}"),
                          HasSubstr("warning projection.statement_failed")));
}

TEST(FailedStatement, ThatIsWrongIsLoggedToo) {
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log});
  Projections projections{store};
  projections.add_inline(Told{misspell});
  place(store, "1");
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("costumers")));
}

TEST(FailedStatement, OfAHandlerThatFailsIsSaidByItsFailure) {
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log});
  Projections projections{store};
  projections.add(Told{[](ReadModel& model, const std::string& customer) {
                    model.execute("INSERT INTO {customers} VALUES (?1)", customer);
                  }},
                  {.max_attempts = 1});
  place(store, "1");
  place(store, "2");
  Runner{projections}.catch_up();
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("error projection.halted projector=told")));
}

TEST(FailedStatementOnSqlite, IsCounted) {
  test::RecordingMetrics metrics;
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("orders.db"), {.metrics = &metrics});
  Projections projections{store};
  projections.add(Told{insert_if_new});
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  Runner{projections}.catch_up();
  EXPECT_EQ(metrics.counts().at("stela_handler_failed_statements_total{handler=told}"), 2);
}

}  // namespace
}  // namespace stela
