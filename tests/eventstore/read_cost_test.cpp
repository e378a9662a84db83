// What reads cost: as much as what they return, however much else the store holds.
#include "support/histories.hpp"
#include "support/sqlite_steps.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

namespace stela {
namespace {

using test::steps_of;

/// `type` must outlive it.
NewEvent event(std::string_view type) {
  return {type, 1, false, "{}"};
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

}  // namespace
}  // namespace stela
