#include "support/histories.hpp"
#include "support/orders.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stela::context_test {
namespace {

using test::message_of;
using test::Order;
using ::testing::AllOf;
using ::testing::HasSubstr;

const Context request{.correlation_id = "request-7",
                      .actor = "jane",
                      .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                      .tracestate = "vendor=1",
                      .headers = {{"tenant", "acme"}}};

TEST(ContextScope, HoldsForAsLongAsItLives) {
  EXPECT_EQ(current_context(), Context{});
  {
    const ContextScope scope{request};
    EXPECT_EQ(current_context(), request);
  }
  EXPECT_EQ(current_context(), Context{});
}

TEST(ContextScope, InheritsItsEmptyFields) {
  const ContextScope outer{request};
  const ContextScope inner{{.actor = "joe", .headers = {{"tenant", "other"}, {"step", "2"}}}};

  EXPECT_EQ(current_context().correlation_id, "request-7");
  EXPECT_EQ(current_context().actor, "joe");
  EXPECT_EQ(current_context().traceparent, request.traceparent);
  EXPECT_EQ(current_context().headers,
            (std::map<std::string, std::string>{{"step", "2"}, {"tenant", "other"}}));
}

TEST(ContextScope, BelongsToItsThread) {
  const ContextScope scope{request};
  Context elsewhere = request;
  std::thread{[&] { elsewhere = current_context(); }}.join();

  EXPECT_EQ(elsewhere, Context{});
}

TEST(ContextScope, EndsTheProcessWhenItEndsOnAnotherThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto scope = std::make_unique<ContextScope>(request);
        std::thread{[&] { scope.reset(); }}.join();
      },
      "ended on another thread");
  EXPECT_DEATH(
      {
        auto scope = std::make_unique<ContextScope>(request);
        std::thread{[&] {
          const ContextScope other{request};
          scope.reset();
        }}.join();
      },
      "ended on another thread");
}

TEST(ContextScope, EndsTheProcessWhenItEndsBeforeAScopeInsideIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto outer = std::make_unique<ContextScope>(request);
        const ContextScope inner{{.actor = "joe"}};
        outer.reset();
      },
      "before a scope inside it");
}

TEST(ContextScope, OfExactlyAContextInheritsNothingButAReplay) {
  const ContextScope outer{request};
  {
    const auto scope = ContextScope::exactly({.actor = "joe"});
    EXPECT_EQ(current_context(), Context{.actor = "joe"});
  }
  EXPECT_THROW((void)ContextScope::exactly({.actor = "\x01"}), UsageError);
  EXPECT_EQ(current_context(), request);

  testing::MemoryStore store;
  test::append(store, "order-1");
  for (const StoredEvent& event : store.read_all()) {
    const ContextScope replay = ContextScope::replaying(event);
    const auto scope = ContextScope::exactly(request);
    EXPECT_TRUE(is_replaying());
  }
}

/// A coroutine that nobody waits for.
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// Continues on another thread.
struct ToAnotherThread {
  std::thread& thread;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    // The coroutine may be gone, and this with it, as soon as the thread runs.
    std::thread& started = thread;
    started = std::thread{waiting};
  }
  void await_resume() const noexcept {}
};

/// All that appends, each on a thread of its own, with the context that it is given.
Detached append_on_threads(EventLog& log, Context context, std::vector<std::thread>& threads) {
  Order order = Order::place(Id<Order>::from("1"), "jane", 100);
  co_await ToAnotherThread{threads[0]};
  Repository<Order>{log}.save(order, {.context = &context});

  UnitOfWork unit{log, context};
  unit.load(Id<Order>::from("1")).note("in a unit");
  co_await ToAnotherThread{threads[1]};
  unit.in_transaction([&](Transaction&) { EXPECT_EQ(current_context(), context); });
  unit.commit();

  co_await ToAnotherThread{threads[2]};
  decide(log, {.context = &context}, [&](Decision& decision) {
    EXPECT_EQ(current_context(), context);
    decision.load(Id<Order>::from("1")).note("decided");
  });
  UnitOfWork deciding{log, context};
  decide(deciding, [&](Decision& decision) {
    EXPECT_EQ(current_context(), context);
    decision.load(Id<Order>::from("1")).note("decided in a unit");
  });
  deciding.commit();
  EXPECT_EQ(current_context(), Context{});
}

TEST(ExplicitContext, FollowsACoroutineFromThreadToThread) {
  testing::MemoryStore store;
  std::vector<std::thread> threads(3);
  {
    const ContextScope of_this_thread{{.actor = "somebody else"}};
    append_on_threads(store, request, threads);
    // Each is started by the one before.
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(current_context().actor, "somebody else");
  }

  std::vector<Context> contexts;
  for (const StoredEvent& event : store.read_all()) contexts.push_back(event.context());
  EXPECT_THAT(contexts, AllOf(::testing::SizeIs(4), ::testing::Each(request)));
}

TEST(ExplicitContext, OfACommitComesBeforeThatOfItsUnit) {
  testing::MemoryStore store;
  const Context other{.correlation_id = "other", .actor = "joe"};
  UnitOfWork unit{store, request};
  unit.add(Order::place(Id<Order>::from("1"), "jane", 100));
  unit.commit({.context = &other});
  unit.load(Id<Order>::from("1")).note("n");
  unit.commit();

  std::vector<Context> contexts;
  for (const StoredEvent& event : store.read_all()) contexts.push_back(event.context());
  EXPECT_THAT(contexts, ::testing::ElementsAre(other, request));
}

TEST(ExplicitContext, DoesNotLetAReplayAppend) {
  testing::MemoryStore store;
  test::append(store, "order-1");
  Order order = Order::place(Id<Order>::from("2"), "jane", 100);
  for (const StoredEvent& event : store.read_all()) {
    const ContextScope replay = ContextScope::replaying(event);
    EXPECT_THAT(message_of<UsageError>(
                    [&] { Repository<Order>{store}.save(order, {.context = &request}); }),
                HasSubstr("inside a replay"));
  }
}

TEST(ContextScope, NamesAValueThatItCannotKeep) {
  const auto refusal = [](Context context) {
    return message_of<UsageError>([&] { const ContextScope scope{std::move(context)}; });
  };

  EXPECT_THAT(refusal({.correlation_id = "a\nb"}), HasSubstr("correlation id"));
  EXPECT_THAT(refusal({.correlation_id = std::string(129, 'c')}), HasSubstr("128 bytes"));
  EXPECT_THAT(refusal({.actor = "\x01"}), HasSubstr("actor"));
  EXPECT_THAT(refusal({.actor = "\xff"}), HasSubstr("actor"));
  EXPECT_THAT(refusal({.traceparent = "\r\n"}), HasSubstr("traceparent"));
  EXPECT_THAT(refusal({.headers = {{"a b", "c"}}}), HasSubstr("header's name"));
  EXPECT_THAT(refusal({.headers = {{"", "c"}}}), HasSubstr("header's name"));
  EXPECT_THAT(refusal({.headers = {{"a", "x\ny"}}}), HasSubstr("header 'a'"));
  EXPECT_THAT(refusal({.actor = std::string(65537, 'a')}), HasSubstr("64 KiB"));
  EXPECT_EQ(current_context(), Context{});
}

TEST(ContextScope, OfAnEventPassesItsContextOnAndNamesItAsTheCause) {
  testing::MemoryStore store;
  {
    const ContextScope scope{request};
    test::append(store, "order-1");
  }
  for (const StoredEvent& event : store.read_stream(StreamId::parse("order-1"))) {
    const ContextScope handling = ContextScope::handling(event);
    EXPECT_EQ(current_context().causation_id, event.id);
    EXPECT_FALSE(is_replaying());
    test::append(store, "order-2");
  }

  std::vector<Context> contexts;
  std::vector<EventId> ids;
  for (const StoredEvent& event : store.read_all()) {
    contexts.push_back(event.context());
    ids.push_back(event.id);
  }
  ASSERT_EQ(contexts.size(), 2U);
  EXPECT_EQ(contexts[0], request);
  Context expected = request;
  expected.causation_id = ids[0];
  EXPECT_EQ(contexts[1], expected);
}

TEST(ContextScope, OfAnEventThatBeganACorrelationContinuesIt) {
  testing::MemoryStore store;
  test::append(store, "order-1");
  for (const StoredEvent& event : store.read_all()) {
    const ContextScope handling = ContextScope::handling(event);
    EXPECT_EQ(current_context().correlation_id, event.id.to_string());
  }
}

TEST(ContextScope, IsNotDisturbedByLoading) {
  testing::MemoryStore store;
  Repository<Order> orders{store};
  {
    const ContextScope scope{request};
    Order order = Order::place(Id<Order>::from("1"), "jane", 100);
    orders.save(order);
  }
  const ContextScope mine{{.correlation_id = "mine"}};
  const Context before = current_context();
  Order order = orders.load(Id<Order>::from("1"));
  EXPECT_EQ(current_context(), before);
  order.note("mine");
  orders.save(order);

  std::string last;
  for (const StoredEvent& event : store.read_all()) last = event.correlation_id();
  EXPECT_EQ(last, "mine");
}

TEST(ContextScope, OfAReplayRefusesAppends) {
  testing::MemoryStore store;
  test::append(store, "order-1");
  for (const StoredEvent& event : store.read_all()) {
    const ContextScope replay = ContextScope::replaying(event);
    EXPECT_TRUE(is_replaying());
    EXPECT_THAT(message_of<UsageError>([&] { test::append(store, "order-2"); }),
                HasSubstr("inside a replay"));
    const ContextScope inner{{.actor = "joe"}};
    EXPECT_TRUE(is_replaying());
  }
  EXPECT_FALSE(is_replaying());
  EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
}

}  // namespace
}  // namespace stela::context_test
