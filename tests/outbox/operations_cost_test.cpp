// What operators' work on many messages costs: it grows as their number does, and no faster.
#include "outbox/shop.hpp"
#include "support/sqlite_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace stela::operations_cost_test {
namespace {

using test::Shop;
using test::steps_of;
using ::testing::ElementsAre;

constexpr std::size_t few = 500;
constexpr std::size_t many = 4 * few;

void append(Shop& shop, std::size_t events) {
  const std::vector<NewEvent> placed(events / 4, NewEvent{"placed", 1, true, "{}"});
  for (int i = 0; i < 4; ++i) test::append(shop.store, "order-" + std::to_string(i), placed);
}

/// Nothing waits any more: everything is published, in batches of ten.
void publish(Shop& shop) {
  while (shop.operations.status().pending > 0) shop.relay();
}

using Work = std::function<void(Shop&)>;

/// The work on four times as many events takes four times as many steps; with a few to spare.
void expect_linear(Fence fence, const Work& prepare, const Work& work) {
  const auto steps = [&](std::size_t events) {
    Shop shop{{.partition_count = 2, .fence = fence}, {.batch_size = 10}};
    append(shop, events);
    prepare(shop);
    return steps_of(shop.store, [&] { work(shop); });
  };
  const std::int64_t with_few = steps(few);
  const std::int64_t with_many = steps(many);

  EXPECT_GT(with_few, 0);
  EXPECT_LE(with_many, 5 * with_few) << "for " << few << " events: " << with_few;
}

class OperationsCost : public ::testing::TestWithParam<Fence> {};

INSTANTIATE_TEST_SUITE_P(EveryFence, OperationsCost,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

constexpr RepublishSelection everything{.to = GlobalSequence{1'000'000'000}};

void wait(Shop&) {}

TEST_P(OperationsCost, OfReconcilingGrowsWithPendingMessages) {
  expect_linear(GetParam(), wait,
                [](Shop& shop) { EXPECT_EQ(shop.operations.reconcile().missing, 0); });
}

TEST_P(OperationsCost, OfReconcilingGrowsWithPublishedEvents) {
  expect_linear(GetParam(), publish,
                [](Shop& shop) { EXPECT_EQ(shop.operations.reconcile().missing, 0); });
}

TEST_P(OperationsCost, OfEnqueuingGrowsWithMissingMessages) {
  const auto lose = [](Shop& shop) { shop.raw().run("DELETE FROM outbox_messages"); };
  expect_linear(GetParam(), lose, [](Shop& shop) {
    EXPECT_EQ(shop.operations.reconcile().missing, shop.store.last_sequence().value());
  });
}

TEST_P(OperationsCost, OfRepublishingGrowsWithPendingMessages) {
  expect_linear(GetParam(), wait,
                [](Shop& shop) { EXPECT_EQ(shop.operations.republish(everything).messages, 0); });
}

TEST_P(OperationsCost, OfRepublishingGrowsWithPublishedEvents) {
  expect_linear(GetParam(), publish, [](Shop& shop) {
    EXPECT_EQ(shop.operations.republish(everything).messages, shop.store.last_sequence().value());
  });
}

TEST_P(OperationsCost, OfRepublishingGrowsWithRedeliveries) {
  const auto twice = [](Shop& shop) {
    publish(shop);
    shop.operations.republish(everything);
  };
  expect_linear(GetParam(), twice, [](Shop& shop) { shop.operations.republish(everything); });
}

/// What a FileBroker keeps; without a fence it is all in one place.
class FileContents final : public BrokerContents {
 public:
  explicit FileContents(Shop& shop) : broker_{shop.broker} {
    const OutboxStatus status = shop.operations.status();
    if (status.fence != Fence::none) return;
    for (const PartitionStatus& each : status.partitions) all_.push_back(each.id);
  }

  bool read(PartitionId partition, Take take) override {
    for (const PartitionId each : all_.empty() ? std::vector{partition} : all_) {
      for (const FoundMessage& message : broker_.stored(each)) take(message);
    }
    return false;
  }

 private:
  test::FileBroker& broker_;
  std::vector<PartitionId> all_;
};

Compared compare(Shop& shop) {
  FileContents contents{shop};
  return shop.operations.compare(contents);
}

TEST_P(OperationsCost, OfComparingGrowsWithPublishedEvents) {
  expect_linear(GetParam(), publish, [](Shop& shop) {
    const Compared compared = compare(shop);
    EXPECT_EQ(compared.found, shop.store.last_sequence().value());
    EXPECT_EQ(compared.missing, 0);
  });
}

TEST_P(OperationsCost, OfComparingGrowsWithLostMessages) {
  const auto lose = [](Shop& shop) {
    publish(shop);
    shop.broker.database().run("DELETE FROM stored");
  };
  expect_linear(GetParam(), lose, [](Shop& shop) {
    EXPECT_EQ(compare(shop).missing, shop.store.last_sequence().value());
  });
}

TEST_P(OperationsCost, IsShownWhileItGrows) {
  Shop shop{{.fence = GetParam()}};
  append(shop, 4 * few);
  std::vector<std::string> seen;
  shop.operations.on_progress([&](const Progress& progress) {
    seen.push_back(std::string{progress.stage} + ' ' + std::to_string(progress.done) + '/' +
                   std::to_string(progress.total));
  });

  shop.operations.reconcile();
  EXPECT_THAT(seen, ElementsAre("reconcile 1000/2000", "reconcile 2000/2000"));

  seen.clear();
  publish(shop);
  shop.operations.republish({.from = GlobalSequence{501}}, Mode::dry_run);
  EXPECT_THAT(seen, ElementsAre("counting 500/1500", "counting 1000/1500", "counting 1500/1500"));
}

}  // namespace
}  // namespace stela::operations_cost_test
