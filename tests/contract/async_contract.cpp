// Appends that nobody waits for: what a store does with them, whichever its engine.
#include "contract/async.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef __SANITIZE_THREAD__
// A future and its promise share an exception, and whoever is last frees it. That count is in the
// standard library, which ThreadSanitizer doesn't see into.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace stela::async_contract {
namespace {

using test::AsyncContract;
using test::lines;
using ::testing::Each;
using ::testing::ElementsAre;

const NewEvent noted{"noted", 1, false, "{}"};

TEST_P(AsyncContract, AppendsWhatTheRequestHeld) {
  std::future<AppendResult> placed;
  {
    const std::string type = "order.placed";
    const std::string payload = R"({"customer":"a customer with a long name"})";
    const StreamId stream = StreamId::parse("order-1");
    const StreamId other = StreamId::parse("order-2");
    const std::vector<Tag> tags{StreamId::parse("customer-jane")};
    const Context own{.correlation_id = "request-9", .actor = "joe"};
    const std::vector<NewEvent> events{
        {.type = type, .schema_version = 3, .publishes = true, .payload = payload, .tags = tags},
        {.type = "noted", .payload = "{}", .context = &own}};
    const std::vector<StreamAppend> streams{{stream, ExpectedVersion::none(), events},
                                            {other, ExpectedVersion::none(), {&noted, 1}}};
    const std::string append_id = "an append id that doesn't fit into a short text";
    const ContextScope scope{{.correlation_id = "request-7", .actor = "jane"}};
    placed = append({.streams = streams, .append_id = append_id});
  }

  const AppendResult result = placed.get();
  EXPECT_EQ(result.first, GlobalSequence{1});
  EXPECT_EQ(result.last, GlobalSequence{3});
  EXPECT_THAT(result.versions, ElementsAre(StreamVersion{2}, StreamVersion{1}));
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.placed", "2 order-1@2 noted", "3 order-2@1 noted"));
  std::vector<std::string> seen;
  for (const StoredEvent& event : store->read_all({.with_tags = true})) {
    seen.push_back(event.correlation_id() + ' ' + event.context().actor + ' ' +
                   std::to_string(event.schema_version()) + ' ' + std::string{event.payload} + ' ' +
                   std::string{event.tags});
  }
  EXPECT_THAT(seen, ElementsAre(R"(request-7 jane 3 {"customer":"a customer with a long name"} )"
                                "customer-jane",
                                "request-9 joe 1 {} ", "request-7 jane 1 {} "));
  EXPECT_TRUE(
      append({.append_id = "an append id that doesn't fit into a short text"}).get().repeated);
}

TEST_P(AsyncContract, MakesThemInTheOrderOfTheCallsAndNoFailureStopsTheNext) {
  constexpr int count = 1000;
  std::vector<std::future<AppendResult>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(append("order-1", ExpectedVersion::exactly(StreamVersion{i})));
    if (i == count / 2) {
      all.push_back(append("order-1", ExpectedVersion::exactly(StreamVersion{i})));
    }
  }

  std::vector<std::string> conflicts;
  std::int64_t last = 0;
  for (auto& one : all) {
    try {
      const AppendResult result = one.get();
      EXPECT_EQ(result.first, GlobalSequence{++last});
    } catch (const ConcurrencyConflict& e) {
      conflicts.push_back(e.expected() + " but " + std::to_string(e.actual().value()));
    }
  }
  EXPECT_THAT(conflicts, ElementsAre("version 500 but 501"));
  EXPECT_EQ(last, count);
}

TEST_P(AsyncContract, AnswersWithTheErrorThatAppendWouldThrow) {
  (void)append("order-1", ExpectedVersion::none()).get();

  EXPECT_THROW((void)append("order-1", ExpectedVersion::none()).get(), ConcurrencyConflict);
  const AppendCondition condition{.query = {.items = {{.tags = {StreamId::parse("order-1")}}}},
                                  .after = GlobalSequence{0}};
  EXPECT_THROW((void)append({.append_id = "one", .condition = &condition}).get(),
               ConditionConflict);
  const NewEvent nameless{"", 1, false, "{}"};
  const StreamId stream = StreamId::parse("order-1");
  const StreamAppend one{stream, ExpectedVersion::any(), {&nameless, 1}};
  EXPECT_THROW((void)append({.streams = {&one, 1}}).get(), UsageError);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

TEST_P(AsyncContract, HasTenThousandUnderWayOnOneThread) {
  constexpr int count = 10'000;
  boost::asio::thread_pool one{1};
  std::atomic<int> failed{0};
  std::atomic<std::int64_t> sum{0};
  {
    Async many{handle, one, {.in_flight = count}};
    // Until all of them are under way, the executor is busy.
    std::promise<void> submitted;
    boost::asio::post(one, [&] { submitted.get_future().wait(); });
    std::vector<std::future<AppendResult>> all;
    for (int i = 0; i < count; ++i) {
      const StreamId stream = StreamId::of("order", std::to_string(i % 100));
      const StreamAppend to{stream, ExpectedVersion::exactly(StreamVersion{i / 100}), {&noted, 1}};
      all.push_back(many.append({.streams = {&to, 1}}, boost::asio::use_future));
    }
    EXPECT_EQ(many.in_flight(), std::size_t{count});
    submitted.set_value();
    for (int i = 0; i < count; ++i) {
      if (all[static_cast<std::size_t>(i)].get().first != GlobalSequence{i + 1}) ++failed;
    }
    EXPECT_EQ(many.in_flight(), 0U);
  }
  one.join();

  EXPECT_EQ(failed, 0);
  EXPECT_EQ(store->last_sequence(), GlobalSequence{count});
}

TEST_P(AsyncContract, ReturnsAtOnceWhileATransactionHoldsTheLine) {
  std::future<AppendResult> placed;
  std::future<GlobalSequence> read;
  store->transact([&](Transaction& transaction) {
    transaction.append({.append_id = "held"});
    // On the thread that the store waits for.
    placed = append("order-1", ExpectedVersion::none());
    read = async.run([] { return GlobalSequence{7}; }, boost::asio::use_future);
    EXPECT_EQ(read.get(), GlobalSequence{7});
    EXPECT_EQ(placed.wait_for(std::chrono::seconds{0}), std::future_status::timeout);
  });

  EXPECT_EQ(placed.get().first, GlobalSequence{1});
}

TEST_P(AsyncContract, SharesTheLineWithThreadsThatAppendThemselves) {
  constexpr int each = 200;
  std::vector<std::future<AppendResult>> all;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        const StreamId stream = StreamId::of("blocking", std::to_string(t));
        for (int i = 0; i < each; ++i) {
          const StreamAppend one{stream, ExpectedVersion::exactly(StreamVersion{i}), {&noted, 1}};
          (void)store->append({.streams = {&one, 1}});
        }
      });
    }
    for (int i = 0; i < each; ++i) {
      all.push_back(append("order-1", ExpectedVersion::exactly(StreamVersion{i})));
    }
  }
  for (auto& one : all) (void)one.get();

  EXPECT_EQ(store->last_sequence(), GlobalSequence{4 * each});
}

/// Users' code in the store: where it runs, and in which context.
struct Witness : TransactionParticipant {
  std::string_view name() const noexcept override { return "witness"; }
  std::string_view detail() const noexcept override { return ""; }
  void on_append(Transaction&, std::span<const StoredEvent> events) override {
    note(events);
    if (events.front().type() == "refused") throw std::domain_error{"refused"};
  }
  void note(std::span<const StoredEvent> events) {
    const std::lock_guard lock{mutex};
    threads.push_back(std::this_thread::get_id());
    seen.push_back(std::to_string(events.size()) + ' ' + events.front().type() + ' ' +
                   current_context().actor);
  }

  std::mutex mutex;
  std::vector<std::thread::id> threads;
  std::vector<std::string> seen;
};

TEST_P(AsyncContract, RunsParticipantsOnTheExecutorEachAppendAlone) {
  boost::asio::thread_pool one{1};
  std::promise<std::thread::id> id;
  boost::asio::post(one, [&] { id.set_value(std::this_thread::get_id()); });
  Witness witness;
  store->attach(witness);
  {
    Async alone{handle, one};
    std::vector<std::future<AppendResult>> all;
    const StreamId stream = StreamId::parse("order-1");
    const auto append = [&](std::string_view type, std::string_view actor) {
      const NewEvent event{type, 1, false, "{}"};
      const StreamAppend to{stream, ExpectedVersion::any(), {&event, 1}};
      const ContextScope scope{{.actor = std::string{actor}}};
      all.push_back(alone.append({.streams = {&to, 1}}, boost::asio::use_future));
    };
    append("a", "jane");
    append("refused", "joe");
    append("c", "ann");
    EXPECT_EQ(all[0].get().first, GlobalSequence{1});
    EXPECT_THROW((void)all[1].get(), std::domain_error);
    EXPECT_EQ(all[2].get().first, GlobalSequence{2});
  }
  store->detach(witness);

  EXPECT_THAT(witness.seen, ElementsAre("1 a jane", "1 refused joe", "1 c ann"));
  EXPECT_THAT(witness.threads, Each(id.get_future().get()));
}

TEST_P(AsyncContract, TellsListenersOnTheExecutorInTheContextOfTheAppend) {
  boost::asio::thread_pool one{1};
  std::promise<std::thread::id> id;
  boost::asio::post(one, [&] { id.set_value(std::this_thread::get_id()); });
  Witness witness;
  const Subscription listening =
      store->on_commit([&](const CommitNotice& notice) { witness.note(notice.events); });
  {
    Async alone{handle, one};
    const StreamId stream = StreamId::parse("order-1");
    const StreamAppend to{stream, ExpectedVersion::none(), {&noted, 1}};
    const Context context{.actor = "jane"};
    const AppendRequest request{.streams = {&to, 1}, .context = context};
    (void)alone.append(request, boost::asio::use_future).get();
    EXPECT_THROW((void)alone.append(request, boost::asio::use_future).get(), ConcurrencyConflict);
  }

  EXPECT_THAT(witness.seen, ElementsAre("1 noted jane"));
  EXPECT_THAT(witness.threads, ElementsAre(id.get_future().get()));
}

}  // namespace
}  // namespace stela::async_contract
