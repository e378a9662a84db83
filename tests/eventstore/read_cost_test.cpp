// What reads cost: as much as what they return, however much else the store holds.
#include "support/histories.hpp"
#include "support/sqlite_steps.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stela::read_cost_test {
namespace {

using test::lines;
using test::steps_of;

constexpr std::size_t few = 20'000;
constexpr std::size_t many = 80'000;

/// `type` must outlive it.
NewEvent event(std::string_view type) {
  return {type, 1, false, "{}"};
}

/// `events` in three streams, of so many types that each block has events of all of them; and one
/// of a rare type, in a stream of its own, before and after.
void fill(Store& store, std::size_t events) {
  std::vector<std::string> types;
  for (int i = 0; i < 250; ++i) types.push_back("common" + std::to_string(i));
  std::vector<NewEvent> page;
  for (std::size_t i = 0; i < 1000; ++i) page.push_back(event(types[i % types.size()]));
  test::append(store, "rare-1", {event("rare")});
  for (std::size_t i = 0; i < events / page.size(); ++i) {
    test::append(store, "order-" + std::to_string(i % 3), page);
  }
  test::append(store, "rare-1", {event("rare")});
}

std::int64_t steps_to_read(std::size_t events, const AllQuery& query) {
  const test::TempDir dir;
  auto store = test::open_store(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  fill(*store, events);
  lines(store->read_all(query));
  return steps_of(*store, [&] { EXPECT_EQ(lines(store->read_all(query)).size(), 2u); });
}

void expect_independent_of_other_events(const AllQuery& query) {
  const std::int64_t with_few = steps_to_read(few, query);
  const std::int64_t with_many = steps_to_read(many, query);

  EXPECT_GT(with_few, 0);
  EXPECT_LE(with_many, with_few + with_few / 10);
  EXPECT_LE(with_many, 40'000);
}

TEST(ReadCost, OfARareStreamIsThatOfItsEvents) {
  expect_independent_of_other_events({.streams = {"rare-1"}});
  expect_independent_of_other_events({.streams = {"rare-1"}, .direction = Direction::backward});
}

TEST(ReadCost, OfAStreamUpToASequenceIsThatOfItsEventsByThen) {
  const auto steps = [](std::size_t later) {
    const test::TempDir dir = test::TempDir::in_memory();
    auto store = test::open_store(dir.file("shop.db"));
    test::append(*store, "order-1", 300);
    test::append(*store, "order-1", later);
    const StreamQuery by_then{.up_to = GlobalSequence{300}};
    const auto id = StreamId::parse("order-1");
    lines(store->read_stream(id, by_then));
    return steps_of(*store,
                    [&] { EXPECT_EQ(lines(store->read_stream(id, by_then)).size(), 300u); });
  };

  // It may look at one page of what came later.
  EXPECT_LE(steps(few), steps(2000) + steps(0) / 10);
}

TEST(ReadCost, OfARareTypeIsThatOfItsBlocks) {
  expect_independent_of_other_events({.event_types = {"rare"}});
  expect_independent_of_other_events({.event_types = {"rare"}, .direction = Direction::backward});
}

TEST(ReadCost, OfARareCategoryIsThatOfItsBlocks) {
  expect_independent_of_other_events({.categories = {"rare"}});
}

/// In every second block a few events of category "wide", of so many types.
std::int64_t steps_to_read_every_second_block(std::size_t types) {
  const test::TempDir dir;
  auto store = test::open_store(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  constexpr std::size_t block = 1024;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 200; ++i) names.push_back("type" + std::to_string(i % types));
  for (int i = 0; i < 20; ++i) {
    std::vector<NewEvent> wide;
    for (const std::string& name : names) wide.push_back(event(name));
    test::append(*store, "wide-1", wide);
    test::append(*store, "order-1", std::vector<NewEvent>(2 * block - wide.size(), event("o")));
  }
  const AllQuery query{.categories = {"wide"}};
  lines(store->read_all(query));
  return steps_of(*store, [&] { EXPECT_EQ(lines(store->read_all(query)).size(), 4000u); });
}

TEST(ReadCost, OfACategoryDoesNotGrowWithItsTypesInEveryBlock) {
  const std::int64_t with_few = steps_to_read_every_second_block(1);
  const std::int64_t with_many = steps_to_read_every_second_block(200);

  EXPECT_GT(with_few, 0);
  EXPECT_LE(with_many, 2 * with_few);
}

TEST(ReadCost, OfARepeatedAppendDoesNotGrowWithItsStream) {
  const auto steps = [](std::size_t before) {
    const test::TempDir dir;
    auto store = test::open_store(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
    test::append(*store, "order-1", std::vector<NewEvent>(before, event("common")));
    test::append(*store, "order-1", {event("last")}, "id");
    return steps_of(*store, [&] {
      EXPECT_TRUE(test::append(*store, "order-1", {event("last")}, "id").repeated);
    });
  };
  const std::int64_t short_stream = steps(10);

  EXPECT_GT(short_stream, 0);
  EXPECT_EQ(steps(10'000), short_stream);
}

/// The events that a filter selects, looked for one by one.
std::vector<std::string> selected(Store& store, const AllQuery& query) {
  const auto has = [](const std::vector<std::string>& list, std::string_view one) {
    return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
  };
  std::vector<std::string> all;
  for (const StoredEvent& event :
       store.read_all({.from = query.from, .to = query.to, .direction = query.direction})) {
    if (!has(query.streams, event.stream.name()) || !has(query.event_types, event.type()) ||
        !has(query.categories, event.stream.category())) {
      continue;
    }
    if (static_cast<std::int64_t>(all.size()) == query.limit) break;
    all.push_back(std::to_string(event.sequence.value()));
  }
  return all;
}
std::vector<std::string> read(Store& store, const AllQuery& query) {
  std::vector<std::string> all;
  for (const StoredEvent& event : store.read_all(query)) {
    all.push_back(std::to_string(event.sequence.value()));
  }
  return all;
}

TEST(FilteredRead, EqualsAScanOfEveryEvent) {
  std::mt19937 random{7};
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const test::TempDir dir;
  auto store = test::open_store(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  // Streams and types from very frequent to very rare.
  const auto skewed = [&] { return below(1 + below(1 + below(40))); };
  for (int i = 0; i < 3000; ++i) {
    const std::string category = below(3) == 0 ? "basket-" : "order-";
    const std::string type = "type" + std::to_string(skewed());
    test::append(*store, category + std::to_string(skewed()),
                 std::vector<NewEvent>(1 + below(60), event(type)));
  }
  const auto last = static_cast<std::size_t>(store->last_sequence().value());

  for (int i = 0; i < 120; ++i) {
    AllQuery query;
    for (std::size_t n = below(4); n > 0; --n) {
      query.streams.push_back("order-" + std::to_string(below(45)));
    }
    for (std::size_t n = below(3); n > 0; --n) {
      query.event_types.push_back("type" + std::to_string(below(45)));
    }
    if (below(3) == 0) query.categories.push_back("order");
    if (below(2) == 0) query.from = GlobalSequence{static_cast<std::int64_t>(below(last))};
    if (below(2) == 0) query.to = GlobalSequence{static_cast<std::int64_t>(below(last + 10))};
    if (below(2) == 0) query.direction = Direction::backward;
    if (below(3) == 0) query.limit = static_cast<std::int64_t>(1 + below(3000));
    EXPECT_EQ(read(*store, query), selected(*store, query)) << "query " << i;
  }
}

}  // namespace
}  // namespace stela::read_cost_test
