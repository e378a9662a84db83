#include "support/histories.hpp"
#include "support/orders.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
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
