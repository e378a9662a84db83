#include "projections/models.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <new>

namespace stela::reaction_test {
namespace {

using namespace std::chrono_literals;
using test::note;
using test::place;
using test::standing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct StockReserved {
  static constexpr EventType event_type{"stock.reserved", 1, should_publish};
  std::string order;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order));
  }
};
struct StockMissing {
  static constexpr EventType event_type{"stock.missing", 1, local};
  std::string order;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(order));
  }
};

struct StockState {
  std::int64_t left = 2;
  void apply(const StockReserved&) { --left; }
  void apply(const StockMissing&) {}
};
class Stock : public AggregateRoot<StockState, EventSet<StockReserved, StockMissing>> {
 public:
  static constexpr std::string_view category = "stock";
  using AggregateRoot::AggregateRoot;
  void reserve(std::string order) {
    if (state().left > 0) {
      record(StockReserved{std::move(order)});
    } else {
      record(StockMissing{std::move(order)});
    }
  }
};

/// An order that is placed reserves stock; where there is none, the order is told.
class Reserve {
 public:
  static constexpr ReactionType reaction_type{"reserve"};
  using Events = EventSet<test::OrderPlaced, StockMissing>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    const auto id = Id<Stock>::from("shelf");
    Stock* const known = unit.find(id);
    Stock& stock = known != nullptr ? *known : unit.add(Stock{id});
    stock.reserve(std::string{placed.stream().key()});
    if (placed->customer == "nobody") throw std::runtime_error{"who?"};
  }
  void react(UnitOfWork& unit, const Recorded<StockMissing>& missing) {
    unit.load(Id<test::Order>::from(missing->order)).note("out of stock");
  }
};

TEST(Reaction, RecordsOnOtherAggregatesAndCompensates) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(Reserve{});
  for (const char* const key : {"1", "2", "3"}) place(store, key);

  Runner{projections}.run_once();

  std::vector<std::string> seen;
  for (const StoredEvent& event : store.read_all({.from = GlobalSequence{4}})) {
    seen.push_back(event.stream.name() + ' ' + event.type());
  }
  EXPECT_THAT(seen, ElementsAre("stock-shelf stock.reserved", "stock-shelf stock.reserved",
                                "stock-shelf stock.missing", "order-3 order.noted"));
  EXPECT_THAT(standing(store), ElementsAre("reserve@1 v1 living 7"));
}

TEST(Reaction, KeepsTheCorrelationAndNamesTheCause) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(Reserve{});
  {
    const ContextScope scope{{.correlation_id = "checkout", .actor = "web"}};
    place(store, "1");
  }

  Runner{projections}.run_once();

  EventRange range = store.read_all();
  const auto events = range.next_page();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].correlation_id(), "checkout");
  EXPECT_EQ(events[1].causation_id, events[0].id);
  EXPECT_EQ(events[1].context().actor, "web");
}

TEST(Reaction, RollsItsEventsBackWhenItThrows) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(Reserve{}, {.handling = {.max_attempts = 1}});
  place(store, "1");
  Repository<test::Order> orders{store};
  auto order = test::Order::place(Id<test::Order>::from("2"), "nobody", 1);
  orders.save(order);
  place(store, "3");

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.stopped, 1);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4}) << "one reservation, for the first order";
  EXPECT_THAT(standing(store), ElementsAre("reserve@1 v1 living 1 stopped at 2"));
  ProjectionOperations{store}.skip("reserve", GlobalSequence{2});
  Runner{projections}.run_once();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{5});
}

/// Commits what its runner commits, and catches the error.
struct Committing {
  static constexpr ReactionType reaction_type{"committing"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    unit.load(Id<test::Order>::from(placed.stream().key())).note("seen");
    const Context invalid{.actor = "\x01"};
    try {
      unit.commit({.context = is_invalid ? &invalid : nullptr});
    } catch (const UsageError&) {
    }
  }
  bool is_invalid = false;
};

TEST(Reaction, FailsIfItCommitsAndCatchesTheError) {
  for (const bool is_invalid : {false, true}) {
    auto store = test::open_empty();
    Projections projections{store};
    projections.add_reaction(Committing{is_invalid}, {.handling = {.max_attempts = 1}});
    place(store, "1");
    Runner{projections}.run_once();

    EXPECT_THAT(standing(store), ElementsAre("committing@1 v1 living 0 stopped at 1"));
    EXPECT_THAT(
        ProjectionOperations{store}.status().at(0).error,
        AllOf(HasSubstr("a handler commits its unit of work"), HasSubstr("leave the commit out")));
    EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  }
}

/// Counts orders in a missing table, and catches the error.
struct Careless {
  static constexpr ReactionType reaction_type{"careless"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>&) {
    unit.in_transaction([](Transaction& transaction) {
      try {
        Sql{transaction}.execute("UPDATE nowhere SET n = n + 1");
      } catch (const UsageError&) {
      }
    });
  }
};

TEST(Reaction, ReportsAFailedStatementWhoseErrorItCaught) {
  test::RecordingLog log;
  auto store = test::open_empty({.log = &log});
  Projections projections{store};
  projections.add_reaction(Careless{});
  place(store, "1");
  Runner{projections}.run_once();

  EXPECT_THAT(standing(store), ElementsAre("careless@1 v1 living 1"));
  EXPECT_THAT(log.entries(),
              ElementsAre(HasSubstr("warning projection.statement_failed projector=careless")));
}

/// Notes each order that is placed, if there is memory.
class Noting {
 public:
  static constexpr ReactionType reaction_type{"noting"};
  using Events = EventSet<test::OrderPlaced>;
  explicit Noting(const bool& short_of_memory) : short_of_memory_{&short_of_memory} {}

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    unit.load(Id<test::Order>::from(placed.stream().key())).note("seen");
    if (*short_of_memory_) throw std::bad_alloc{};
  }

 private:
  const bool* short_of_memory_;
};

TEST(Reaction, ShortOfMemoryBlocksNoOther) {
  testing::ManualClock clock;
  auto store = test::open_empty({.clock = &clock});
  Projections projections{store};
  bool short_of_memory = true;
  projections.add_reaction(Noting{short_of_memory}, {.handling = {.max_attempts = 1}});
  projections.add_reaction(Reserve{});
  place(store, "1");
  Runner runner{projections};

  EXPECT_EQ(runner.run_once().failed, 1);
  EXPECT_THAT(standing(store),
              ElementsAre("noting@1 v1 living 0 retries 1", "reserve@1 v1 living 2"));
  short_of_memory = false;
  clock.advance(1s);
  runner.run_once();
  EXPECT_THAT(standing(store), ElementsAre("noting@1 v1 living 3", "reserve@1 v1 living 3"));
}

TEST(Reaction, BeginsNowUnlessItIsToldTo) {
  auto store = test::open_empty();
  place(store, "1");
  Projections projections{store};
  projections.add_reaction(Reserve{});
  Runner{projections}.run_once();
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});

  auto other = test::open_empty();
  place(other, "1");
  Projections others{other};
  others.add_reaction(Reserve{}, {.start = ReactionStart::beginning});
  Runner{others}.run_once();
  EXPECT_EQ(other.last_sequence(), GlobalSequence{2});
}

TEST(Reaction, IsNotReplayed) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(Reserve{});
  projections.add(test::Counts{});
  place(store, "1");
  Runner{projections}.run_once();

  EXPECT_TRUE(Replayer{projections}.run().is_complete);

  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  EXPECT_THAT(test::message_of<UsageError>(
                  [&] { (void)Replayer{projections}.run({.projectors = {"reserve"}}); }),
              HasSubstr("'reserve' is a reaction"));
}

TEST(Reaction, TakesManyEventsInOrder) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(Reserve{});
  for (int i = 0; i < 300; ++i) place(store, std::to_string(i));

  Runner{projections}.run_once();

  std::vector<std::int64_t> missing;
  for (const StoredEvent& event : store.read_all({.event_types = {"stock.missing"}})) {
    missing.push_back(event.version.value());
  }
  EXPECT_EQ(missing.size(), 298U);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{300 + 300 + 298});
}

/// Writes to a second store, which fails.
class WritesElsewhere {
 public:
  static constexpr ReactionType reaction_type{"elsewhere"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork&, const Recorded<test::OrderPlaced>& placed) {
    if (placed.stream().key() == "2") throw StoreFailed{"the other store's disk"};
  }
};

TEST(Reaction, IsChargedWithTheFailureOfAnotherStore) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_reaction(WritesElsewhere{}, {.handling = {.max_attempts = 1}});
  for (const char* const key : {"1", "2"}) place(store, key);

  Runner{projections}.run_once();

  EXPECT_THAT(standing(store), ElementsAre("elsewhere@1 v1 living 1 stopped at 2"));
}

/// Commits with order 2, by SQL on the connection that it is lent.
class Commits {
 public:
  static constexpr ReactionType reaction_type{"commits"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    unit.in_transaction([&](Transaction& transaction) {
      Sql{transaction}.execute("INSERT INTO seen VALUES (?1)", placed.stream().key());
      if (placed.stream().key() != "2") return;
      sqlite3_exec(sqlite::handle(transaction), "COMMIT; BEGIN", nullptr, nullptr, nullptr);
    });
  }
};

TEST(Reaction, ThatCommitsOnTheLentConnectionHaltsAndRepeatsNothing) {
  auto store = test::open_empty();
  store.transact(
      [](Transaction& transaction) { Sql{transaction}.execute("CREATE TABLE seen (key TEXT)"); });
  Projections projections{store};
  projections.add_reaction(Commits{}, {.handling = {.max_attempts = 3}});
  for (const char* const key : {"1", "2", "3"}) place(store, key);

  for (int i = 0; i < 3; ++i) Runner{projections}.run_once();

  EXPECT_THAT(standing(store), ElementsAre("commits@1 v1 living 1 stopped at 2"));
  EXPECT_THAT(ProjectionOperations{store}.status().at(0).error,
              ::testing::HasSubstr("what it did before that may be committed"));
  store.transact([](Transaction& transaction) {
    EXPECT_EQ(Sql{transaction}.value<int>("SELECT count(*) FROM seen"), 2);
  });
}

/// Fills the disk in SQL of its own, and says so in its own words.
class FillsTheDisk {
 public:
  static constexpr ReactionType reaction_type{"fills"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>&) {
    unit.in_transaction([](Transaction& transaction) {
      auto* const database = sqlite::handle(transaction);
      sqlite3_exec(database, "PRAGMA max_page_count = 1", nullptr, nullptr, nullptr);
      const int code = sqlite3_exec(database, "INSERT INTO big VALUES (zeroblob(1000000))", nullptr,
                                    nullptr, nullptr);
      if (code != SQLITE_OK) throw std::runtime_error{"can't write"};
    });
  }
};

TEST(Reaction, IsNotChargedWithAFullDiskOfItsOwnStore) {
  auto store = test::open_empty();
  store.transact([](Transaction& transaction) {
    sqlite3_exec(sqlite::handle(transaction), "CREATE TABLE big (it)", nullptr, nullptr, nullptr);
  });
  Projections projections{store};
  projections.add_reaction(FillsTheDisk{}, {.handling = {.max_attempts = 1}});
  place(store, "1");

  EXPECT_THROW(Runner{projections}.run_once(), StoreFull);

  EXPECT_THAT(standing(store), ElementsAre("fills@1 v1 living 0"));
}

}  // namespace
}  // namespace stela::reaction_test
