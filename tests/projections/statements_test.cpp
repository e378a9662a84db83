// Statements of projectors: those that fail unseen, and those that made the tables.
#include "projections/models.hpp"
#include "support/messages.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>

namespace stela::statements_test {
namespace {

using namespace std::chrono_literals;
using test::lines;
using test::message_of;
using test::OrderPlaced;
using test::place;
using test::standing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  Runner{projections}.run_once();

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

/// Sees whether it is told inside a transaction of the store's.
class Outsider final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    if (entry.name != "projection.statement_failed") return;
    try {
      store->transact([](Transaction&) {});
      told.emplace_back("after the commit");
    } catch (const UsageError&) {
      told.emplace_back("before the commit");
    }
  }

  Store* store = nullptr;
  std::vector<std::string> told;
};

TEST(FailedStatement, OfAnInlineProjectorThatIsNewIsLoggedAfterTheCommit) {
  Outsider log;
  auto store = test::open_empty({.log = &log});
  log.store = &store;
  for (const char* const key : {"1", "2"}) place(store, key);
  Projections projections{store};
  projections.add_inline(Told{insert_if_new});
  EXPECT_THAT(log.told, ElementsAre("after the commit"));
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
  Runner{projections}.run_once();
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("error projection.stopped projector=told")));
}

TEST(FailedStatementOnSqlite, IsCounted) {
  test::RecordingMetrics metrics;
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("orders.db"), {.metrics = &metrics});
  Projections projections{store};
  projections.add(Told{insert_if_new});
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  Runner{projections}.run_once();
  EXPECT_EQ(metrics.counts().at("stela_handler_failed_statements_total{handler=told}"), 2);
}

/// A projector while whose handler runs somebody else appends.
Told crossed(Store& store, std::string& refusal) {
  return Told{[&](ReadModel&, const std::string&) {
    std::async(std::launch::async, [&] {
      refusal = message_of<StoreBusy>([&] { place(store, "2"); });
    }).wait();
  }};
}

TEST(WaitingWriter, IsToldWhichProjectorHoldsTheStore) {
  auto store = test::open_empty({.busy_timeout = 1ms});
  std::string refusal;
  Projections projections{store};
  projections.add_inline(crossed(store, refusal));
  place(store, "1");
  EXPECT_THAT(refusal, HasSubstr("projector 'told' v1 of this process has held this store's line"));
}

TEST(WaitingWriterOnSqlite, IsToldWhichProjectorsBatchHoldsTheStore) {
  const auto dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("orders.db"), {.busy_timeout = 1ms});
  std::string refusal;
  Projections projections{store};
  projections.add(crossed(store, refusal));
  place(store, "1");
  Runner{projections}.run_once();
  EXPECT_THAT(refusal, HasSubstr("projector 'told' v1 of this process has held this store's line"));
}

// --- create

/// Makes its table as it is told.
template <int version>
class Made {
 public:
  static constexpr ProjectorType projector_type{"made", version};
  using Events = EventSet<OrderPlaced>;

  explicit Made(std::function<void(ReadModel&)> create) : create_{std::move(create)} {}
  void create(ReadModel& model) { create_(model); }
  void project(ReadModel&, const Recorded<OrderPlaced>&) {}

 private:
  std::function<void(ReadModel&)> create_;
};

template <int version = 1>
Made<version> made(const std::string& sql) {
  return Made<version>{[sql](ReadModel& model) { model.execute(sql); }};
}

constexpr const char* narrow = "CREATE TABLE {orders} (id TEXT PRIMARY KEY)";
constexpr const char* wide = "CREATE TABLE {orders} (id TEXT PRIMARY KEY, cents INTEGER)";
constexpr const char* refusal_of_wide =
    "projector 'made' v1 makes its tables by other statements than those that made its tables in "
    "this database: `create` was changed, and the version wasn't; give it version 2";

TEST(ChangedCreate, IsRefusedWithoutANewVersion) {
  auto store = test::open_empty();
  Projections{store}.add(made(narrow));
  EXPECT_THAT(message_of<UsageError>([&] { Projections{store}.add(made(wide)); }),
              HasSubstr(refusal_of_wide));
  EXPECT_THAT(standing(store), ElementsAre("made@1 v1 living 0"));

  Projections projections{store};
  projections.add(made<2>(wide));
  Runner{projections}.run_once();
  EXPECT_THAT(lines(ModelReader{store}.query("SELECT cents FROM orders")), IsEmpty());
}

TEST(ChangedCreate, OfAnInlineProjectorIsRefused) {
  auto store = test::open_empty();
  Projections{store}.add_inline(made(narrow));
  EXPECT_THAT(message_of<UsageError>([&] { Projections{store}.add_inline(made(wide)); }),
              HasSubstr(refusal_of_wide));
  EXPECT_THAT(message_of<UsageError>(
                  [&] { Projections{store}.add_inline_rolling(made<2>(wide), made(wide)); }),
              HasSubstr(refusal_of_wide));
  Projections rebuilt{store};
  rebuilt.add_inline(made(wide), {.rebuild = true});
  EXPECT_THAT(lines(ModelReader{store}.query("SELECT cents FROM orders")), IsEmpty());
}

TEST(ChangedCreate, OfTheVersionBeforeIsRefused) {
  auto store = test::open_empty();
  Projections{store}.add(made(narrow));
  EXPECT_THAT(
      message_of<UsageError>([&] { Projections{store}.add_rolling(made<2>(wide), made(wide)); }),
      HasSubstr(refusal_of_wide));
}

TEST(ChangedCreate, BeginsAnUnfinishedBuildAgain) {
  auto store = test::open_empty();
  Projections{store}.add(made(narrow));
  Projections{store}.add(made<2>(narrow));
  Projections{store}.add(made<2>(narrow));
  EXPECT_THAT(standing(store), ElementsAre("made@1 v1 living 0", "made@2 v2 building 0"));
  Projections{store}.add(made<2>(wide));
  EXPECT_THAT(standing(store), ElementsAre("made@1 v1 living 0", "made@3 v2 building 0"));
}

TEST(UnchangedCreate, MayBeWrittenOtherwise) {
  auto store = test::open_empty();
  Projections{store}.add(made(narrow));
  Projections{store}.add(made("CREATE TABLE   {orders}\n  (id TEXT\tPRIMARY KEY) "));
  Projections{store}.add(Made<1>{[](ReadModel& model) {
    model.execute(narrow);
    model.execute("INSERT INTO {orders} VALUES ('1')");
  }});
  EXPECT_THAT(lines(ModelReader{store}.query("SELECT id FROM orders")), IsEmpty());
}

TEST(UnchangedCreate, MayNameItsTablesByTheModel) {
  auto store = test::open_empty();
  const auto named = [](const std::string& column) {
    return Made<1>{[column](ReadModel& model) {
      model.execute("CREATE TABLE {orders} (id TEXT DEFAULT '" + model.table("orders") + "', " +
                    column + " TEXT)");
    }};
  };
  Projections{store}.add(named("a"));
  Projections{store}.add(named("a"));
  EXPECT_THROW(Projections{store}.add(named("b")), UsageError);
}

TEST(ChangedCreate, IsSeenAfterAComment) {
  auto store = test::open_empty();
  const auto after = [](const char* comment, const char* sql) {
    return made(std::string{comment} + sql);
  };
  Projections{store}.add(after("-- who ordered (what)\n/* and when */ ", narrow));
  Projections{store}.add(after("-- another comment\n", narrow));
  EXPECT_THROW(Projections{store}.add(after("-- who ordered (what)\n", wide)), UsageError);
}

/// Makes the table in another way where the first one isn't possible.
TEST(CreateWithAFallback, IsTakenAsItIs) {
  auto store = test::open_empty();
  const Made<1> with_fallback{[](ReadModel& model) {
    try {
      model.execute("CREATE TABLE {orders} (id TEXT) WITH MAGIC");
    } catch (const UsageError&) {
      model.execute(narrow);
    }
  }};
  Projections{store}.add(with_fallback);
  Projections{store}.add(with_fallback);
  EXPECT_THAT(lines(ModelReader{store}.query("SELECT id FROM orders")), IsEmpty());
}

TEST(CreateThatAsksTheDatabase, IsTakenAsItIs) {
  auto store = test::open_empty();
  const auto asking = [](const std::string& sql) {
    return Made<1>{[sql](ReadModel& model) {
      if (model.value<int>("SELECT 1") == 1) model.execute(sql);
    }};
  };
  Projections{store}.add(asking(narrow));
  Projections{store}.add(asking(wide));
}

TEST(CreateOfAModelElsewhere, IsCalledOnce) {
  auto store = test::open_empty();
  int calls = 0;
  const Made<1> elsewhere{[&](ReadModel&) { ++calls; }};
  Projections{store}.add(elsewhere);
  Projections{store}.add(elsewhere);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace stela::statements_test
