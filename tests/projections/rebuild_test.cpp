#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::rebuild_test {
namespace {

using namespace std::chrono_literals;
using test::note;
using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Rebuild, OfANewVersionTakesOverWhenItHasCaughtUp) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto old_store = test::open_at(dir.file("a.db"));
  Projections old_ones{old_store};
  old_ones.add(Totals<1>{});
  Runner old_runner{old_ones};
  place(old_store, "1");
  old_runner.run_once();
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};
  projections.add(Totals<2>{});
  const auto before = orders_in(store);

  const RunnerTick tick = Runner{projections}.run_once();
  place(store, "2");
  const RunnerTick old_tick = old_runner.run_once();

  EXPECT_THAT(before, ElementsAre("1 jane 100 0 -"));
  EXPECT_EQ(tick.taken_over, 1);
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 200 0 -"));
  EXPECT_EQ(old_tick.owned_count, 0) << "the old version has nothing to drive any more";
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1", "totals@2 v2 living 1"));
}

TEST(Rebuild, IsLeftAloneByARunnerWithAShorterLease) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  for (int i = 0; i < 5; ++i) place(store, std::to_string(i));
  Runner runner{projections, {.lease_ttl = 3s}};
  runner.run_once();
  int looks = 0;

  const ReplayResult rebuilt =
      Replayer{projections}.run({.on_progress = [&](const ReplayProgress&) {
        ++looks;
        EXPECT_EQ(runner.run_once().elsewhere_count, 1) << "the build that the rebuild fills";
      }});

  EXPECT_TRUE(rebuilt.is_complete);
  EXPECT_GT(looks, 0);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 5", "totals@2 v1 living 5"));
}

TEST(Rebuild, KeepsNoOldVersionWithoutItsProgram) {
  auto store = test::open_empty();
  {
    Projections old_ones{store};
    old_ones.add(Totals<1>{});
    place(store, "1");
    place(store, "2");
    Runner{old_ones}.run_once();
  }
  auto poison = std::make_shared<std::vector<std::int64_t>>(1, 2);
  Projections projections{store};
  projections.add_rolling(Totals<2>{test::throwing_at(poison)}, Totals<1>{});
  Runner runner{projections};

  place(store, "3");
  runner.run_once();
  const auto meanwhile = orders_in(store);
  poison->clear();
  ProjectionOperations{store}.retry("totals");
  const RunnerTick tick = runner.run_once();
  place(store, "4");
  runner.run_once();

  EXPECT_THAT(meanwhile, ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "3 jane 100 0 -"));
  EXPECT_EQ(tick.taken_over, 1);
  EXPECT_THAT(orders_in(store),
              ElementsAre("1 jane 200 0 -", "2 jane 200 0 -", "3 jane 200 0 -", "4 jane 200 0 -"));
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 3", "totals@2 v2 living 4"));
}

TEST(Rebuild, LetsTheOldVersionHaveItsTurnsWhileTheNewOneHasFarToGo) {
  constexpr int all = 40'000;
  auto store = test::open_empty();
  for (int i = 0; i < all / 100; ++i) {
    UnitOfWork unit{store};
    for (int j = 0; j < 100; ++j) {
      unit.append(StreamId::of("order", std::to_string(i * 100 + j)), ExpectedVersion::none(),
                  test::OrderPlaced{"jane", 100});
    }
    unit.commit();
  }
  {
    Projections old_ones{store};
    old_ones.add(Totals<1>{});
    Runner{old_ones}.run_once();
  }
  place(store, "late");
  ModelReader reader{store};
  bool was_there = false;
  Projections projections{store};
  const auto look = [&](ReadModel&, const StoredEvent& event) {
    if (event.sequence.value() != all) return;
    was_there = reader.value<int>("SELECT count(*) FROM orders WHERE id = 'late'") == 1;
  };
  projections.add_rolling(Totals<2>{look}, Totals<1>{});

  Runner{projections}.run_once();

  EXPECT_TRUE(was_there);
  EXPECT_EQ(reader.value<int>("SELECT count(*) FROM orders WHERE cents = 200"), all + 1);
}

TEST(Rebuild, ByHandIsOfTheNewVersionOfTwo) {
  auto store = test::open_empty();
  {
    Projections old_ones{store};
    old_ones.add(Totals<1>{});
    place(store, "1");
    Runner{old_ones}.run_once();
  }
  Projections projections{store};
  projections.add_rolling(Totals<2>{}, Totals<1>{});

  EXPECT_TRUE(Replayer{projections}.run().is_complete);

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 200 0 -"));
}

TEST(Rebuild, DropsTheOldTablesAfterAGrace) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner runner{projections, {.drop_after = 60s}};
  runner.run_once();
  ASSERT_TRUE(Replayer{projections}.run().is_complete);

  runner.run_once();
  const auto at_once = standing(store);
  clock.advance(61s);
  runner.run_once();

  EXPECT_THAT(at_once, ElementsAre("totals@1 v1 retired 1", "totals@2 v1 living 1"));
  EXPECT_THAT(standing(store), ElementsAre("totals@2 v1 living 1"));
  EXPECT_THAT(test::objects_in(store, "%orders"), ElementsAre("orders", "totals@2.orders"));
}

TEST(Rebuild, MendsTablesThatWereChangedByHand) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();
  test::RawSqlite{dir.file("a.db")}.run("DROP VIEW orders; DROP TABLE \"totals@1.orders\"");
  EXPECT_EQ(Runner{projections}.run_once().stopped, 1);

  (void)Replayer{projections}.run();

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -"));
  EXPECT_THAT(standing(store),
              ElementsAre("totals@1 v1 retired 1 stopped", "totals@2 v1 living 1"));
}

TEST(Rebuild, NeverShowsReadersAHalfBuiltModel) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  for (int i = 0; i < 3000; ++i) place(store, std::to_string(i));
  Runner{projections}.run_once();
  ModelReader reader{store};
  int looks = 0;

  (void)Replayer{projections}.run({.on_progress = [&](const ReplayProgress&) {
    ++looks;
    EXPECT_EQ(reader.value<int>("SELECT count(*) FROM orders"), 3000);
  }});

  EXPECT_GT(looks, 1);
  EXPECT_EQ(reader.value<int>("SELECT count(*) FROM orders"), 3000);
}

TEST(Rebuild, IncludesEventsAppendedMeanwhile) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  for (int i = 0; i < 200; ++i) place(store, std::to_string(i));
  Runner runner{projections};
  runner.run_once();
  int more = 200;

  (void)Replayer{projections}.run({.on_progress = [&](const ReplayProgress&) {
    if (more < 4000) {
      // At once: meanwhile the rebuild's lease isn't renewed.
      UnitOfWork unit{store};
      for (int i = 0; i < 1900; ++i) {
        unit.add(test::Order::place(Id<test::Order>::from(std::to_string(more++)), "jane", 100));
      }
      unit.commit();
      runner.run_once();
    }
  }});

  EXPECT_EQ(orders_in(store).size(), static_cast<std::size_t>(more));
}

TEST(Rebuild, ThatThrowsLeavesTheLivingModelAlone) {
  auto store = test::open_empty();
  auto poison = std::make_shared<std::vector<std::int64_t>>();
  Projections projections{store};
  projections.add(Totals<1>{test::throwing_at(poison)});
  Runner runner{projections};
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  runner.run_once();
  poison->push_back(2);
  Replayer replayer{projections};

  EXPECT_THAT(test::message_of<UsageError>([&] { replayer.run(); }),
              HasSubstr("the rebuild of projector 'totals' v1 stopped at event 2"));
  EXPECT_THAT(standing(store),
              ElementsAre("totals@1 v1 living 3", "totals@2 v1 building 1 stopped at 2"));
  place(store, "4");
  runner.run_once();
  EXPECT_EQ(orders_in(store).size(), 4U);

  poison->clear();
  const ReplayResult again = replayer.run();
  EXPECT_TRUE(again.was_resumed);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 4", "totals@2 v1 living 4"));
}

TEST(Rebuild, ContinuesAfterASkippedEvent) {
  auto store = test::open_empty();
  auto poison = std::make_shared<std::vector<std::int64_t>>();
  Projections projections{store};
  projections.add(Totals<1>{test::throwing_at(poison)});
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  Runner{projections}.run_once();
  poison->push_back(2);
  EXPECT_THROW((void)Replayer{projections}.run(), UsageError);

  ProjectionOperations{store}.skip("totals", GlobalSequence{2});
  EXPECT_TRUE(Replayer{projections}.run().is_complete);

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -", "3 jane 100 0 -"));
  EXPECT_EQ(ProjectionOperations{store}.parked("totals").at(0).state, ParkedEventState::skipped);
}

TEST(Rebuild, CanBeGivenUp) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  Runner{projections}.run_once();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(Replayer{projections}.run({}, stop.get_token()).is_complete);

  ProjectionOperations{store}.cancel_rebuild("totals");

  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 1"));
  EXPECT_THAT(
      test::message_of<UsageError>([&] { ProjectionOperations{store}.cancel_rebuild("totals"); }),
      HasSubstr("isn't being rebuilt"));
}

TEST(Rebuild, RefusesASecondOneAtOnce) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Totals<1>{});
  place(store, "1");
  std::string refused;

  (void)Replayer{projections}.run({.on_progress = [&](const ReplayProgress&) {
    refused = test::message_of<UsageError>([&] { (void)Replayer{projections}.run(); });
  }});

  EXPECT_THAT(refused, HasSubstr("is being rebuilt by"));
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 0", "totals@2 v1 living 1"));
}

TEST(Rebuild, OfAnInlineProjectorContinuesDuringAppends) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Totals<1>{});
  for (int i = 0; i < 1500; ++i) place(store, std::to_string(i));
  bool appended = false;

  (void)Replayer{projections}.run({.on_progress = [&](const ReplayProgress&) {
    if (!std::exchange(appended, true)) place(store, "meanwhile");
  }});
  place(store, "later");

  EXPECT_EQ(orders_in(store).size(), 1502U);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1501", "totals@2 v1 living 1502"));
}

/// The tables of one version refer to each other; the next has other tables.
template <int version>
class Lines {
 public:
  static constexpr ProjectorType projector_type{"lines", version};
  using Events = EventSet<test::OrderPlaced>;
  void create(ReadModel& model) {
    if (version == 1) {
      model.execute("CREATE TABLE {a_heads} (id INTEGER PRIMARY KEY)");
      model.execute("CREATE TABLE {b_lines} (head INTEGER REFERENCES {a_heads})");
    } else {
      model.execute("CREATE TABLE {c_lines} (id INTEGER PRIMARY KEY)");
    }
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    if (version == 1) {
      model.execute("INSERT INTO {a_heads} VALUES (?1)", e.sequence());
      model.execute("INSERT INTO {b_lines} VALUES (?1)", e.sequence());
    } else {
      model.execute("INSERT INTO {c_lines} VALUES (?1)", e.sequence());
    }
  }
};

TEST(Rebuild, TakesViewsAndTablesAwayThatTheNewVersionHasNot) {
  auto store = test::open_empty();
  {
    Projections projections{store};
    projections.add(Lines<1>{});
    place(store, "1");
    Runner{projections}.run_once();
  }
  Projections projections{store};
  projections.add(Lines<2>{});
  Runner runner{projections, {.drop_after = 0ms}};

  runner.run_once();
  runner.run_once();

  EXPECT_THAT(test::objects_in(store, "%lines"), ElementsAre("c_lines", "lines@2.c_lines"));
  EXPECT_THAT(test::objects_in(store, "%heads"), IsEmpty());
}

}  // namespace
}  // namespace stela::rebuild_test
