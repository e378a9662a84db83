// The end of a subscription, while other threads commit. Run under tsan as well.
#include "support/histories.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

namespace stela::test::subscription_test {
namespace {

/// A listener that is called on another thread, and returns when it is told to.
struct SlowListener {
  void operator()() {
    has_begun.test_and_set();
    has_begun.notify_all();
    may_end.wait(false);
    has_ended = true;
  }

  std::atomic_flag has_begun;
  std::atomic_flag may_end;
  std::atomic<bool> has_ended{false};
};

class SubscriptionEnd : public ::testing::Test {
 protected:
  /// What the listener has come to when the subscription has ended.
  bool listener_has_ended_with(Subscription& subscription) {
    const std::jthread appending{[this] { append(*store, "order-1"); }};
    listener.has_begun.wait(false);
    auto ending = std::async(std::launch::async, [&] {
      subscription = Subscription{};
      return listener.has_ended.load();
    });
    ending.wait_for(std::chrono::milliseconds{100});
    listener.may_end.test_and_set();
    listener.may_end.notify_all();
    return ending.get();
  }

  const TempDir dir = TempDir::in_memory();
  const std::unique_ptr<Store> store = open_store(dir.file("shop.db"));
  SlowListener listener;
};

TEST_F(SubscriptionEnd, WaitsForACommitListenerThatIsRunning) {
  Subscription subscription = store->on_commit([&](const CommitNotice&) { listener(); });
  EXPECT_TRUE(listener_has_ended_with(subscription));
}

TEST_F(SubscriptionEnd, WaitsForAListenerOfABusThatIsRunning) {
  EventBus bus{*store};
  Subscription subscription = bus.on_any([&](const StoredEvent&) { listener(); });
  EXPECT_TRUE(listener_has_ended_with(subscription));
}

TEST_F(SubscriptionEnd, CanComeInsideACallOfItsListener) {
  int calls = 0;
  Subscription subscription;
  subscription = store->on_commit([&](const CommitNotice&) {
    ++calls;
    subscription.disconnect();
    ++calls;
  });
  append(*store, "order-1");
  append(*store, "order-1");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace stela::test::subscription_test
