// What writes to many streams cost, and taking them back: it grows as their number does, and no
// faster.
#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/sqlite_steps.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace stela::write_cost_test {
namespace {

using test::OrderNoted;
using test::steps_of;

constexpr int few = 5'000;
constexpr int many = 4 * few;
constexpr int crowd = 40'000;

using Work = std::function<void(Store&, int streams)>;

void in_new_store(const std::function<void(Store&)>& work) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = test::open_store(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  work(*store);
}

void append_to(EventLog& log, int streams) {
  for (int i = 0; i < streams; ++i) test::append(log, "order-" + std::to_string(i));
}

/// SQLite's work, for four times as many streams.
void expect_linear_steps(const Work& work) {
  const auto steps = [&](int streams) {
    std::int64_t count = 0;
    in_new_store([&](Store& store) { count = steps_of(store, [&] { work(store, streams); }); });
    return count;
  };
  const std::int64_t with_few = steps(few);
  const std::int64_t with_many = steps(many);

  EXPECT_GT(with_few, 0);
  EXPECT_LE(with_many, 5 * with_few) << "for " << few << " streams: " << with_few;
}

/// What the appends of a transaction cost, and the roll-back of them.
struct Costs {
  std::clock_t appends = 0;
  std::clock_t roll_back = 0;
};

/// In a transaction of a store, or one within a transaction.
template <class Outer>
Costs roll_back_appends(Outer& outer, int streams) {
  Costs costs;
  std::clock_t end = 0;
  const auto fail = [&](Transaction& transaction) {
    const std::clock_t begin = std::clock();
    append_to(transaction, streams);
    end = std::clock();
    costs.appends = end - begin;
    throw std::runtime_error{"no"};
  };
  EXPECT_THROW(outer.transact(fail), std::runtime_error);
  costs.roll_back = std::clock() - end;
  return costs;
}

TEST(WriteCost, OfARollBackGrowsWithItsStreams) {
  const auto work = [](Store& store, int streams) {
    const Costs costs = roll_back_appends(store, streams);
    EXPECT_EQ(store.last_sequence(), GlobalSequence{});
    return costs;
  };
  expect_linear_steps(work);
  in_new_store([&](Store& store) {
    const Costs costs = work(store, crowd);
    // A fiftieth; looking at all streams for each it is several times as much.
    EXPECT_LT(costs.roll_back, costs.appends);
  });
}

TEST(WriteCost, OfAnUndoneSavepointGrowsWithItsStreams) {
  const auto work = [](Store& store, int streams) {
    Costs costs;
    store.transact([&](Transaction& transaction) {
      append_to(transaction, streams);
      costs = roll_back_appends(transaction, streams);
    });
    EXPECT_EQ(store.last_sequence(), GlobalSequence{streams});
    return costs;
  };
  expect_linear_steps(work);
  in_new_store([&](Store& store) {
    const Costs costs = work(store, crowd);
    EXPECT_LT(costs.roll_back, costs.appends);
  });
}

/// Commits it too.
void gather(Store& store, int streams) {
  UnitOfWork unit{store};
  for (int i = 0; i < streams; ++i) {
    unit.append(StreamId::of("order", std::to_string(i)), ExpectedVersion::none(), OrderNoted{});
  }
  EXPECT_EQ(unit.commit().last, GlobalSequence{streams});
}

TEST(WriteCost, OfAUnitOfWorkGrowsWithItsStreams) {
  expect_linear_steps(gather);
  const auto cost = [](int streams) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    // What others take from the caches makes it more.
    for (int i = 0; i < 3; ++i) {
      in_new_store([&](Store& store) {
        const std::clock_t begin = std::clock();
        gather(store, streams);
        least = std::min(least, std::clock() - begin);
      });
    }
    return least;
  };

  // Looking at all streams for each it would be sixteen times as much.
  EXPECT_LT(cost(crowd), 9 * cost(crowd / 4));
}

}  // namespace
}  // namespace stela::write_cost_test
