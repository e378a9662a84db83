// Foreign keys that SQLite checks at the commit only: the handler that leaves one broken is named.
#include "projections/models.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::deferred_key_test {
namespace {

using test::place;
using test::standing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A parent and a child for each order, the child first; none of 200 cents has a parent, until one
/// of 300 cents makes up for it.
class Family {
 public:
  static constexpr ProjectorType projector_type{"family", 1};
  using Events = EventSet<test::OrderPlaced>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {parents} (cents INTEGER)");
    model.execute("CREATE UNIQUE INDEX {by_cents} ON {parents} (cents)");
    model.execute(
        "CREATE TABLE {children} (cents INTEGER REFERENCES {parents} (cents) DEFERRABLE INITIALLY "
        "DEFERRED)");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {children} VALUES (?1)", e->total_cents);
    if (e->total_cents == 200) return;
    model.execute("INSERT INTO {parents} VALUES (?1) ON CONFLICT DO NOTHING", e->total_cents);
    if (e->total_cents == 300)
      model.execute("INSERT INTO {parents} VALUES (200) ON CONFLICT DO NOTHING");
  }
};

void place_three(Store& store) {
  place(store, "1", 100);
  place(store, "2", 200);
  place(store, "3", 100);
}

TEST(DeferredKey, HaltsTheProjectorThatBreaksIt) {
  for (const bool has_company : {false, true}) {
    auto store = test::open_empty();
    Projections projections{store};
    projections.add(Family{}, {.max_attempts = 1});
    if (has_company) projections.add(test::Counts{});
    place_three(store);

    Runner{projections}.run_once();

    EXPECT_EQ(standing(store).back(), "family@1 v1 living 1 stopped at 2");
    EXPECT_THAT(ProjectionOperations{store}.status().back().error,
                HasSubstr("event 2 (order.placed v1, version 1 of 'order-2'): a deferred FOREIGN "
                          "KEY constraint fails"));
    EXPECT_EQ(standing(store).front(),
              has_company ? "counts@1 v1 living 3" : standing(store).back());
  }
}

TEST(DeferredKey, ParksOnlyTheEventThatBreaksIt) {
  auto store = test::open_empty();
  Projections projections{store};
  projections.add(Family{}, {.on_error = OnError::park, .max_attempts = 1});
  projections.add(test::Counts{});
  place_three(store);

  const RunnerTick tick = Runner{projections}.run_once();

  EXPECT_EQ(tick.parked, 1);
  EXPECT_THAT(standing(store), ElementsAre("counts@1 v1 living 3", "family@1 v1 living 3"));
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT count(*) FROM children"), 2);
}

/// Writes a child without a parent for the order of 200 cents, in SQL of its own.
class Orphans {
 public:
  static constexpr ReactionType reaction_type{"orphans"};
  using Events = EventSet<test::OrderPlaced>;

  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& placed) {
    if (placed->total_cents != 200) return;
    unit.in_transaction([](Transaction& transaction) {
      Sql{transaction}.execute("INSERT INTO children VALUES (1, 7)");
    });
  }
};

TEST(DeferredKey, HaltsTheReactionThatBreaksIt) {
  auto store = test::open_empty();
  store.transact([](Transaction& transaction) {
    Sql{transaction}.execute(
        "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES children "
        "DEFERRABLE INITIALLY DEFERRED)");
  });
  Projections projections{store};
  projections.add_reaction(Orphans{}, {.handling = {.max_attempts = 1}});
  projections.add(test::Counts{});
  place_three(store);

  Runner{projections}.run_once();

  EXPECT_THAT(standing(store),
              ElementsAre("counts@1 v1 living 3", "orphans@1 v1 living 1 stopped at 2"));
  EXPECT_THAT(ProjectionOperations{store}.status().at(1).error,
              ::testing::ContainsRegex("(a deferred FOREIGN KEY|violates foreign key constraint)"));
}

class DeferredKeyOfAnInlineProjector : public ::testing::Test {
 protected:
  Store store_ = test::open_empty();
  Projections projections_{store_};
};

TEST_F(DeferredKeyOfAnInlineProjector, RefusesTheAppendAndNamesTheEvent) {
  projections_.add_inline(Family{});
  place(store_, "1", 100);

  try {
    place(store_, "2", 200);
    FAIL() << "nothing was thrown";
  } catch (const ConstraintViolated& e) {
    EXPECT_EQ(e.code(), ErrorCode::constraint_violated);
    EXPECT_EQ(e.constraint().projector, "family");
    EXPECT_THAT(e.what(), HasSubstr("event 2 (order.placed v1, version 1 of 'order-2')"));
  }
  EXPECT_EQ(store_.last_sequence(), GlobalSequence{1});
  place(store_, "3", 100);
  EXPECT_EQ(ModelReader{store_}.value<int>("SELECT count(*) FROM children"), 2);
}

TEST_F(DeferredKeyOfAnInlineProjector, MayBeMendedBeforeTheTransactionEnds) {
  projections_.add_inline(Family{});

  store_.transact([](Transaction& transaction) {
    Repository<test::Order> orders{transaction};
    auto child = test::Order::place(Id<test::Order>::from("1"), "jane", 200);
    auto parent = test::Order::place(Id<test::Order>::from("2"), "jane", 300);
    orders.save(child);
    orders.save(parent);
  });

  EXPECT_EQ(ModelReader{store_}.value<int>("SELECT count(*) FROM children"), 2);
}

TEST_F(DeferredKeyOfAnInlineProjector, StopsItFromBeingAddedAndNamesTheEvent) {
  place_three(store_);
  place(store_, "4", 100);

  const std::string problem =
      test::message_of<UsageError>([&] { projections_.add_inline(Family{}); });

  EXPECT_THAT(problem, HasSubstr("a deferred FOREIGN KEY"));
  EXPECT_THAT(problem, HasSubstr("event 2 (order.placed v1, version 1 of 'order-2')"));
}

}  // namespace
}  // namespace stela::deferred_key_test
