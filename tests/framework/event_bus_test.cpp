#include "support/histories.hpp"
#include "support/orders.hpp"
#include "support/recording_sinks.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stela::event_bus_test {
namespace {

using test::Order;
using test::OrderNoted;
using test::OrderPlaced;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EventBusTest : public ::testing::Test {
 protected:
  void place(std::string_view key = "1") {
    Order order = Order::place(Id<Order>::from(key), "jane", 100);
    order.note("by phone");
    Repository<Order>{store}.save(order);
  }

  test::RecordingLog log;
  testing::MemoryStore store{{.log = &log}};
  EventBus bus{store};
  std::vector<std::string> heard;
};

TEST_F(EventBusTest, CallsListenersOfAnEventInTheOrderOfTheirConnection) {
  const auto first = bus.on<OrderPlaced>([&](const Recorded<OrderPlaced>& e) {
    heard.push_back("first " + e->customer + ' ' + e.stream().name());
  });
  const auto second = bus.on<OrderPlaced>(
      [&](const Recorded<OrderPlaced>& e) { heard.push_back("second " + (*e).customer); });
  const auto other = bus.on<OrderNoted>([&](const Recorded<OrderNoted>& e) {
    heard.push_back(e.event().text + ' ' + std::to_string(e.sequence().value()));
  });
  place();

  EXPECT_THAT(heard, ElementsAre("first jane order-1", "second jane", "by phone 2"));
}

TEST_F(EventBusTest, CallsOnTheCommittingThreadOnceItIsCommitted) {
  std::thread::id caller;
  GlobalSequence last;
  const auto listening = bus.on<OrderPlaced>([&](const auto&) {
    caller = std::this_thread::get_id();
    last = store.last_sequence();
  });
  std::thread committing{[&] { place(); }};
  const std::thread::id expected = committing.get_id();
  committing.join();

  EXPECT_EQ(caller, expected);
  EXPECT_EQ(last, GlobalSequence{2});
}

TEST_F(EventBusTest, CallsNoListenerForRolledBackEvents) {
  const auto listening =
      bus.on_any([&](const StoredEvent& event) { heard.push_back(event.type()); });
  place();
  heard.clear();
  EXPECT_THROW(place(), ConcurrencyConflict);
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    test::append(transaction, "order-9");
    EXPECT_THAT(heard, IsEmpty());
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);

  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(EventBusTest, CallsAListenerThoughAnotherThrows) {
  std::vector<std::string> errors;
  EventBus guarded{store, [&](const StoredEvent& event, std::exception_ptr error) {
                     try {
                       std::rethrow_exception(error);
                     } catch (const std::exception& e) {
                       errors.push_back(event.describe() + ": " + e.what());
                     }
                   }};
  const auto throwing =
      guarded.on<OrderPlaced>([](const auto&) { throw std::runtime_error{"mail server"}; });
  const auto listening = guarded.on<OrderPlaced>([&](const auto&) { heard.push_back("heard"); });

  EXPECT_NO_THROW(place());

  EXPECT_THAT(heard, ElementsAre("heard"));
  EXPECT_THAT(errors,
              ElementsAre(AllOf(HasSubstr("event 1 (order.placed"), HasSubstr("mail server"))));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(EventBusTest, LogsListenersExceptionsWithoutASink) {
  const auto throwing =
      bus.on<OrderPlaced>([](const auto&) { throw std::runtime_error{"mail server"}; });
  const auto odd = bus.on<OrderNoted>([](const auto&) { throw 7; });
  place();

  EXPECT_THAT(log.entries(), ElementsAre(AllOf(HasSubstr("error bus.listener_failed"),
                                               HasSubstr("problem=mail server")),
                                         HasSubstr("problem=unknown exception")));
}

TEST_F(EventBusTest, ContinuesAfterASinkThatThrows) {
  EventBus guarded{
      store, [](const StoredEvent&, std::exception_ptr) { throw std::runtime_error{"sink"}; }};
  const auto throwing = guarded.on_any([&](const StoredEvent& event) {
    heard.push_back(event.type());
    throw 7;
  });

  EXPECT_NO_THROW(place());

  EXPECT_THAT(heard, ElementsAre("order.placed", "order.noted"));
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("problem=sink"), HasSubstr("problem=sink")));
}

TEST_F(EventBusTest, OfTheStoreCallsAListenerThoughAnotherThrows) {
  int calls = 0;
  const auto throwing = store.on_commit([](const CommitNotice&) { throw 7; });
  const auto listening = store.on_commit([&](const CommitNotice&) { ++calls; });
  place();

  EXPECT_EQ(calls, 1);
  EXPECT_THAT(log.entries(), ElementsAre(AllOf(HasSubstr("error commit.listener_failed"),
                                               HasSubstr("problem=unknown exception"))));
}

TEST_F(EventBusTest, TellsTheErrorSinkOfAPayloadThatDoesNotDecode) {
  const auto listening = bus.on<OrderPlaced>([&](const auto&) { heard.push_back("heard"); });
  test::append(store, "order-1", {NewEvent{"order.placed", 1, true, "{}"}});

  EXPECT_THAT(heard, IsEmpty());
  EXPECT_THAT(log.entries(), ElementsAre(AllOf(HasSubstr("bus.listener_failed"),
                                               HasSubstr("is corrupt"), HasSubstr("customer"))));
}

TEST_F(EventBusTest, EndsWithASubscription) {
  {
    const auto listening = bus.on_any([&](const StoredEvent&) { heard.push_back("heard"); });
  }
  auto dropped = bus.on_any([&](const StoredEvent&) { heard.push_back("dropped"); });
  dropped.disconnect();
  place();

  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(EventBusTest, LetsAListenerSaveWithTheEventAsItsCause) {
  const auto listening = bus.on<OrderPlaced>([&](const Recorded<OrderPlaced>& e) {
    if (e.stream().key() != "1") return;
    place("2");
  });
  {
    const ContextScope scope{{.correlation_id = "request-7"}};
    place("1");
  }

  std::vector<StoredEvent> events;
  EventRange range = store.read_all();
  const auto page = range.next_page();
  ASSERT_EQ(page.size(), 4U);
  EXPECT_EQ(page[2].stream.name(), "order-2");
  EXPECT_EQ(page[2].causation_id, page[0].id);
  EXPECT_EQ(page[2].correlation_id(), "request-7");
}

TEST_F(EventBusTest, TellsADelivererWhetherAllListenersTookTheEvent) {
  bool fails = false;
  const auto listening = bus.on_any([&](const StoredEvent&) {
    if (fails) throw std::runtime_error{"no"};
    heard.push_back("heard");
  });
  test::append(store, "order-1");
  heard.clear();
  EventRange range = store.read_all();
  const StoredEvent& event = range.next_page().front();

  EXPECT_TRUE(bus.deliver(event));
  fails = true;
  std::exception_ptr error;
  EXPECT_FALSE(bus.deliver(event, &error));
  EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
  EXPECT_THAT(heard, ElementsAre("heard"));
}

struct OldRenamed {
  static constexpr EventType event_type{"thing.done", 1};
};
struct Renamed {
  static constexpr EventType event_type{"thing.done", 2};
  using Supersedes = OldRenamed;
  static Renamed upcast(OldRenamed) { return {}; }
};

TEST_F(EventBusTest, HearsOldVersionsAsTheNewest) {
  const auto listening =
      bus.on<Renamed>([&](const Recorded<Renamed>& e) { heard.push_back(e.record().describe()); });
  test::append(store, "thing-1", {NewEvent{"thing.done", 1, false, "{}"}});

  EXPECT_THAT(heard, ElementsAre("event 1 (thing.done v1, version 1 of 'thing-1')"));
}

}  // namespace
}  // namespace stela::event_bus_test
