#include "projections/models.hpp"
#include "support/histories.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite_handle.hpp>

#include <sqlite3.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace stela::inline_test {
namespace {

using test::orders_in;
using test::place;
using test::ship;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(InlineProjector, CommitsItsRowsWithTheEvents) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Totals<1>{});

  place(store, "1");
  ship(store, "1");

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 dhl"));
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 2"));
}

TEST(InlineProjector, RollsTheEventsBackWhenItThrows) {
  auto store = test::open_empty();
  Projections projections{store};
  auto poison = std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{2});
  projections.add_inline(Totals<1>{test::throwing_at(poison)});
  place(store, "1");

  EXPECT_THROW(place(store, "2"), std::runtime_error);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 1"));
  poison->clear();
  place(store, "3");

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -", "3 jane 100 0 -"));
}

TEST(InlineProjector, RollsBackWithTheCallersTransaction) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Totals<1>{});

  EXPECT_THROW(store.transact([](Transaction& transaction) {
    Repository<test::Order> orders{transaction};
    auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 1);
    orders.save(order);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  place(store, "2");

  EXPECT_THAT(orders_in(store), ElementsAre("2 jane 100 0 -"));
}

class Emails {
 public:
  static constexpr ProjectorType projector_type{"emails", 1};
  using Events = EventSet<test::OrderPlaced>;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {customers} (name TEXT NOT NULL UNIQUE)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {customers} VALUES (?1)", e->customer);
  }
};

TEST(InlineProjector, HoldsARuleOfUniquenessForAllAggregates) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Emails{});
  place(store, "1");

  EXPECT_THAT(test::message_of<UniquenessViolated>([&] { place(store, "2"); }),
              HasSubstr("projector 'emails' v1"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

struct Invited {
  static constexpr EventType event_type{"order.invited", 1, should_publish};
  template <class Archive>
  void serialize(Archive&) {}
};

TEST(InlineProjector, EnforcesItsRuleAfterARolledBackAppendOfANewType) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Emails{});

  UnitOfWork unit{store};
  unit.append(StreamId::parse("order-9"), ExpectedVersion::none(), Invited{});
  unit.in_transaction([](Transaction&) { throw std::runtime_error{"no"}; });
  EXPECT_THROW(unit.commit(), std::runtime_error);
  place(store, "1");

  EXPECT_THROW(place(store, "2"), UniquenessViolated);
  EXPECT_THAT(test::lines(ModelReader{store}.query("SELECT * FROM customers")),
              ElementsAre("jane"));
}

TEST(InlineProjector, ForgetsAFailureOfTheStoreWithItsTransaction) {
  auto store = test::open_empty();
  Projections projections{store};
  sqlite3* interrupted = nullptr;
  projections.add_inline(Totals<1>{[&](ReadModel&, const StoredEvent&) {
    if (interrupted == nullptr) return;
    sqlite3_progress_handler(
        interrupted, 1, [](void*) { return 1; }, nullptr);
  }});

  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    interrupted = sqlite::handle(transaction);
    auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 1);
    Repository<test::Order>{transaction}.save(order);
  }),
               StoreFailed);
  sqlite3_progress_handler(std::exchange(interrupted, nullptr), 0, nullptr, nullptr);
  place(store, "2");

  EXPECT_THAT(orders_in(store), ElementsAre("2 jane 100 0 -"));
}

TEST(InlineProjector, IsRequiredOfEveryProcessThatAppends) {
  const test::TempDir dir = test::TempDir::in_memory();
  {
    auto store = test::open_at(dir.file("a.db"));
    Projections projections{store};
    projections.add_inline(Totals<1>{});
  }
  auto store = test::open_at(dir.file("a.db"));

  EXPECT_THAT(test::message_of<ParticipantMissing>([&] { place(store, "1"); }),
              HasSubstr("requires 'projector:totals' (v1)"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

TEST(InlineProjector, CatchesUpOnExistingEvents) {
  auto store = test::open_empty();
  for (int i = 0; i < 2500; ++i) place(store, std::to_string(i));
  Projections projections{store};

  projections.add_inline(Totals<1>{});
  place(store, "last");

  EXPECT_EQ(orders_in(store).size(), 2501U);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 2501"));
}

TEST(InlineProjector, CatchesUpAfterALeaveBehind) {
  const test::TempDir dir = test::TempDir::in_memory();
  {
    auto store = test::open_at(dir.file("a.db"));
    Projections projections{store};
    projections.add_inline(Totals<1>{});
    place(store, "1");
  }
  {
    auto store = test::open_at(dir.file("a.db"));
    ProjectionOperations{store}.leave_behind("totals");
    place(store, "2");
  }
  auto store = test::open_at(dir.file("a.db"));
  EXPECT_EQ(orders_in(store).size(), 1U);
  Projections projections{store};
  projections.add_inline(Totals<1>{});
  place(store, "3");

  EXPECT_EQ(orders_in(store).size(), 3U);
}

TEST(InlineProjector, RefusesAnAppendAfterEventsThatItMissed) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};
  projections.add_inline(Totals<1>{});
  auto other = test::open_at(dir.file("a.db"));
  ProjectionOperations{other}.leave_behind("totals");
  place(other, "1");

  EXPECT_THAT(test::message_of<ParticipantMissing>([&] { place(store, "2"); }),
              HasSubstr("'totals' is at event 0, and events up to 1 were appended without it"));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

TEST(InlineProjector, OfANewVersionTakesOverAndShutsTheOldOneOut) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto old_store = test::open_at(dir.file("a.db"));
  Projections old_ones{old_store};
  old_ones.add_inline(Totals<1>{});
  place(old_store, "1");
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};

  projections.add_inline(Totals<2>{});
  place(store, "2");

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 200 0 -", "2 jane 200 0 -"));
  EXPECT_THAT(test::message_of<ParticipantMissing>([&] { place(old_store, "3"); }),
              HasSubstr("requires 'projector:totals' (v2)"));
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1", "totals@2 v2 living 2"));
}

TEST(InlineProjector, IsRebuiltWhenAskedTo) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = test::open_at(dir.file("a.db"));
  Projections projections{store};
  projections.add_inline(Totals<1>{});
  place(store, "1");
  auto other_store = test::open_at(dir.file("a.db"));
  Projections others{other_store};

  others.add_inline(Totals<1>{}, {.rebuild = true});
  place(store, "2");
  place(other_store, "3");

  EXPECT_EQ(orders_in(store).size(), 3U) << "the first process goes on with the new tables";
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1", "totals@2 v1 living 3"));
}

TEST(InlineProjector, CanNotBecomeAsynchronousUnderItsName) {
  auto store = test::open_empty();
  {
    Projections projections{store};
    projections.add_inline(Totals<1>{});
  }
  Projections projections{store};

  EXPECT_THAT(test::message_of<UsageError>([&] { projections.add(Totals<1>{}); }),
              HasSubstr("'totals' is in this database as inline"));
}

TEST(InlineProjector, IsRefusedTheSecondTimeOnOneStore) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add_inline(Totals<1>{});
  Projections others{store};

  EXPECT_THAT(test::message_of<UsageError>([&] { others.add_inline(Totals<1>{}); }),
              HasSubstr("'projector:totals' takes part in the appends of this store already"));
  EXPECT_THROW(others.add_inline(Totals<2>{}), UsageError);
  place(store, "1");

  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -"));
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 living 1"));
}

TEST(InlineProjector, GoesAwayWithAllOfItsTables) {
  auto store = test::open_empty();
  {
    Projections projections{store};
    projections.add_inline(Totals<1>{});
    place(store, "1");
  }
  ProjectionOperations{store}.remove("totals");
  place(store, "2");

  EXPECT_THAT(test::objects_in(store, "%orders%"), IsEmpty());
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST(InlineProjector, CanBeDestroyedInAForkedChildThatBringsItsOwn) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  test::Process parent{[&] {
    auto store = std::make_unique<Store>(test::open_at(path));
    auto projections = std::make_unique<Projections>(*store);
    projections->add_inline(Totals<1>{});
    place(*store, "1");
    test::Process child{[&] {
      projections.reset();
      store.reset();
      auto own = test::open_at(path);
      Projections own_ones{own};
      own_ones.add_inline(Totals<1>{});
      place(own, "2");
    }};
    if (child.wait() != 0) throw std::runtime_error{"the child failed"};
    place(*store, "3");
  }};

  EXPECT_EQ(parent.wait(), 0);
  auto store = test::open_at(path);
  EXPECT_THAT(orders_in(store), ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "3 jane 100 0 -"));
}

}  // namespace
}  // namespace stela::inline_test
