// Without leasing: one worker has all partitions, and goes past the leases of one that has died.
#include "outbox/shop.hpp"
#include "support/process.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <string>

namespace stela::single_worker_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::Shop;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SingleWorker : public ::testing::TestWithParam<Fence> {
 protected:
  static OutboxOptions with(int partitions) {
    return {.partition_count = partitions, .fence = GetParam(), .leasing = false};
  }
};

INSTANTIATE_TEST_SUITE_P(EachFence, SingleWorker,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

TEST_P(SingleWorker, HasAllPartitionsAlsoAfterAResize) {
  Shop shop{with(4)};
  for (int i = 0; i < 20; ++i) shop.append("order-" + std::to_string(i));
  shop.relay();
  EXPECT_EQ(shop.totals(), "20 published");

  shop.operations.resize(2);
  for (int i = 0; i < 20; ++i) shop.append("order-" + std::to_string(i));
  shop.relay();
  shop.relay();

  EXPECT_EQ(shop.totals(), "40 published");
}

TEST_P(SingleWorker, IsRefusedBesideOneThatLives) {
  Shop shop{with(1)};
  shop.append("order-1");
  Relay first{shop.outbox, shop.broker, {.worker = "first"}};
  EXPECT_EQ(first.run_once().published, 1);
  test::FileBroker other{shop.dir.file("broker.db"), GetParam()};
  Relay second{shop.outbox, other, {.worker = "second"}};

  EXPECT_THAT(message_of<UsageError>([&] { second.run_once(); }),
              AllOf(HasSubstr("leasing off"), HasSubstr("'first' is alive (host "),
                    HasSubstr("process " + std::to_string(getpid()))));

  shop.append("order-1");
  EXPECT_EQ(first.run_once().published, 1);
}

TEST_P(SingleWorker, TakesOverAtOnceFromOneThatHasDied) {
  const test::TempDir dir;
  const auto publish_one = [&](const std::string& worker) {
    auto store = sqlite::open(dir.file("shop.db"));
    Outbox outbox{store, with(2)};
    test::append(store, "order-1", {NewEvent{"placed", 1, true, "{}"}});
    test::FileBroker broker{dir.file("broker.db"), GetParam()};
    Relay relay{outbox, broker, {.worker = worker}};
    EXPECT_EQ(relay.run_once().published, 1) << worker;
    if (worker == "first") ::kill(getpid(), SIGKILL);
  };
  test::Process first{[&] { publish_one("first"); }};
  EXPECT_EQ(first.wait(), 128 + SIGKILL);

  publish_one("second");
}

}  // namespace
}  // namespace stela::single_worker_test
