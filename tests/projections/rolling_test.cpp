// Releases with two versions of an inline projector on one database.
#include "projections/models.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::rolling_test {
namespace {

using test::orders_in;
using test::place;
using test::standing;
using test::Totals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RollingProjector : public ::testing::Test {
 protected:
  /// A process of one release.
  struct Release {
    explicit Release(const std::string& path) : store{test::open_at(path)}, projections{store} {}
    Store store;
    Projections projections;
  };

  test::TempDir dir = test::TempDir::in_memory();
  Release old{dir.file("a.db")};
  Release between{dir.file("a.db")};
  Release next{dir.file("a.db")};
};

TEST_F(RollingProjector, LetsOldProcessesContinue) {
  old.projections.add_inline(Totals<1>{});
  place(old.store, "1");

  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(between.store, "2");
  place(old.store, "3");

  EXPECT_THAT(orders_in(old.store),
              ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "3 jane 100 0 -"));
  EXPECT_THAT(standing(old.store), ElementsAre("totals@1 v1 living 3"));
}

TEST_F(RollingProjector, SwitchesNothingBeforeTheRollOutOfTheVersionBeforeHasEnded) {
  old.projections.add_inline(Totals<1>{});
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(between.store, "1");

  EXPECT_THAT(
      test::message_of<UsageError>(
          [&] { next.projections.add_inline_rolling(Totals<3>{}, Totals<2>{}); }),
      HasSubstr("the database has version 1 of 'totals', and this release rolls out version "
                "3 beside version 2: finish the roll-out of that one first"));
  place(old.store, "2");
  place(between.store, "3");
  EXPECT_THAT(standing(old.store), ElementsAre("totals@1 v1 living 3"));
}

TEST_F(RollingProjector, SwitchesWithTheFirstProcessThatHasTheNewVersionAlone) {
  old.projections.add_inline(Totals<1>{});
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(old.store, "1");
  place(between.store, "2");

  next.projections.add_inline(Totals<2>{});
  place(next.store, "3");
  place(between.store, "4");
  place(next.store, "5");

  EXPECT_THAT(orders_in(old.store),
              ElementsAre("1 jane 200 0 -", "2 jane 200 0 -", "3 jane 200 0 -", "4 jane 200 0 -",
                          "5 jane 200 0 -"));
  EXPECT_THAT(standing(old.store), ElementsAre("totals@1 v1 retired 2", "totals@2 v2 living 5"));
  EXPECT_THAT(test::message_of<ParticipantMissing>([&] { place(old.store, "6"); }),
              HasSubstr("requires 'projector:totals' (v2)"));
}

TEST_F(RollingProjector, SwitchesAlsoWhenItsFirstAppendAfterwardsIsRolledBack) {
  between.projections.add_inline(Totals<1>{});
  Release other{dir.file("a.db")};
  other.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  next.projections.add_inline(Totals<2>{});

  EXPECT_THROW(other.store.transact([](Transaction& transaction) {
    Repository<test::Order> orders{transaction};
    auto order = test::Order::place(Id<test::Order>::from("1"), "jane", 1);
    orders.save(order);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  place(other.store, "2");

  EXPECT_THAT(orders_in(other.store), ElementsAre("2 jane 200 0 -"));
}

TEST_F(RollingProjector, KeepsTheOldVersionIfTheNewOneCantTakeAnEvent) {
  old.projections.add_inline(Totals<1>{});
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(old.store, "1");
  const auto poison = std::make_shared<std::vector<std::int64_t>>(1, 1);

  EXPECT_THAT(test::message_of<std::runtime_error>(
                  [&] { next.projections.add_inline(Totals<2>{test::throwing_at(poison)}); }),
              HasSubstr("event 1"));
  place(old.store, "2");
  place(between.store, "3");

  EXPECT_THAT(orders_in(old.store),
              ElementsAre("1 jane 100 0 -", "2 jane 100 0 -", "3 jane 100 0 -"));
}

TEST_F(RollingProjector, StartsWithTheVersionOfTheDatabase) {
  next.projections.add_inline(Totals<2>{});
  place(next.store, "1");

  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(between.store, "2");

  EXPECT_THAT(standing(next.store), ElementsAre("totals@1 v2 living 2"));
}

TEST_F(RollingProjector, StartsWithTheNewVersionWhereThereIsNone) {
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});

  EXPECT_THAT(standing(between.store), ElementsAre("totals@1 v2 living 0"));
}

TEST_F(RollingProjector, IsNotRebuiltInAnOlderVersion) {
  old.projections.add_inline(Totals<1>{});
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  next.projections.add_inline(Totals<2>{});
  place(next.store, "1");

  EXPECT_THAT(test::message_of<UsageError>([&] { Replayer{old.projections}.run(); }),
              HasSubstr("projector 'totals' v2 is in this database"));
  EXPECT_THAT(standing(next.store), ElementsAre("totals@1 v1 retired 0", "totals@2 v2 living 1"));
}

TEST_F(RollingProjector, IsRebuiltInTheVersionOfTheDatabase) {
  old.projections.add_inline(Totals<1>{});
  between.projections.add_inline_rolling(Totals<2>{}, Totals<1>{});
  place(old.store, "1");

  Replayer{between.projections}.run();
  EXPECT_THAT(standing(old.store), ElementsAre("totals@1 v1 retired 1", "totals@2 v1 living 1"));

  next.projections.add_inline(Totals<2>{});
  place(between.store, "2");
  Replayer{between.projections}.run();
  place(between.store, "3");
  EXPECT_THAT(standing(next.store), Contains("totals@4 v2 living 3"));
  EXPECT_THAT(orders_in(next.store),
              ElementsAre("1 jane 200 0 -", "2 jane 200 0 -", "3 jane 200 0 -"));
}

}  // namespace
}  // namespace stela::rolling_test
