// Calls that nobody waits for, on executors that the tests drive by hand.
// Boost 1.74 needs it before asio.
#include <utility>

#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/temp_dir.hpp"

#include <stela/asio.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace stela::test::async_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Runs what it is given when the test says so. Threads: one.
struct ByHand {
  void execute(std::function<void()> task) {
    if (is_broken) throw std::runtime_error{"no thread to be had"};
    tasks.push_back(std::move(task));
  }
  void run_all() {
    while (!tasks.empty()) {
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }

  std::deque<std::function<void()>> tasks;
  bool is_broken = false;
};

class Asynchronously : public ::testing::Test {
 protected:
  /// Notes how the append ends: its first sequence, or the error.
  void append(AsyncStore& async, std::string_view name, const AsyncCall& call = {},
              ExpectedVersion expected = ExpectedVersion::any()) {
    async.append(make_append("order-1", expected), note(name), call);
  }
  static OwnedAppend make_append(std::string_view stream,
                                 ExpectedVersion expected = ExpectedVersion::any()) {
    const StreamId id = StreamId::parse(stream);
    const NewEvent event{"noted", 1, false, "{}"};
    const StreamAppend one{id, expected, {&event, 1}};
    return OwnedAppend{{.streams = {&one, 1}}};
  }
  std::function<void(std::exception_ptr, AppendResult)> note(std::string_view name) {
    return [this, name = std::string{name}](const std::exception_ptr& error,
                                            const AppendResult& result) {
      ended.push_back(name + ' ' + (error ? message(error) : std::to_string(result.first.value())));
    };
  }
  static std::string message(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      return std::string{to_string(e.code())};
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  AsyncStore::Post by_hand() {
    return [this](AsyncStore::Task task) { executor.execute(std::move(task)); };
  }

  TempDir dir = TempDir::in_memory();
  std::unique_ptr<Store> store = open_store(dir.file("shop.db"), {.busy_timeout = 50ms});
  ByHand executor;
  std::vector<std::string> ended;
};

TEST_F(Asynchronously, AppendsInOneCommitOnOneThread) {
  AsyncStore async{*store, by_hand()};
  append(async, "a");
  append(async, "b", {}, ExpectedVersion::none());
  append(async, "c");
  EXPECT_EQ(executor.tasks.size(), 1U);
  EXPECT_THAT(ended, ElementsAre());
  EXPECT_EQ(async.in_flight(), 3U);

  executor.run_all();
  EXPECT_THAT(ended, ElementsAre("a 1", "b concurrency_conflict", "c 2"));
  EXPECT_EQ(async.in_flight(), 0U);
}

TEST_F(Asynchronously, AsksForASecondThreadOnlyWhenAGroupIsFull) {
  AsyncStore async{*store, by_hand()};
  for (int i = 0; i < 256; ++i) append(async, "a");
  EXPECT_EQ(executor.tasks.size(), 1U);
  for (int i = 0; i < 700; ++i) append(async, "a");
  EXPECT_EQ(executor.tasks.size(), 2U);

  executor.run_all();
  EXPECT_EQ(ended.size(), 956U);
  EXPECT_EQ(ended.back(), "a 956");
}

TEST_F(Asynchronously, RefusesWhatIsTooMuchUnlessTheCallerWaits) {
  AsyncStore async{*store, by_hand(), {.in_flight = 2}};
  append(async, "a");
  append(async, "b");
  append(async, "c");
  EXPECT_THAT(ended, ElementsAre("c store_busy"));
  append(async, "d", {.waits = true});
  EXPECT_EQ(async.in_flight(), 3U);

  executor.run_all();
  append(async, "e");
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre("c store_busy", "a 1", "b 2", "d 3", "e 4"));
}

TEST_F(Asynchronously, CancelsWhatIsQueuedAndNothingElse) {
  AsyncStore async{*store, by_hand()};
  std::stop_source second;
  std::stop_source early;
  std::stop_source late;
  early.request_stop();
  append(async, "a", {.stop = late.get_token()});
  append(async, "b", {.stop = second.get_token()});
  append(async, "c", {.stop = early.get_token()});
  append(async, "d");
  EXPECT_THAT(ended, ElementsAre("c cancelled"));
  second.request_stop();
  EXPECT_THAT(ended, ElementsAre("c cancelled", "b cancelled"));

  // It has begun when its events are committed and listeners are told of it.
  const Subscription listening =
      store->on_commit([&](const CommitNotice&) { late.request_stop(); });
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre("c cancelled", "b cancelled", "a 1", "d 2"));
  EXPECT_EQ(store->last_sequence(), GlobalSequence{2});
}

TEST_F(Asynchronously, CompletesWhatIsQueuedWhenItEndsAndWritesNoneOfIt) {
  {
    AsyncStore async{*store, by_hand()};
    append(async, "a");
    async.run([] { ADD_FAILURE(); },
              [this](const std::exception_ptr& e) { ended.push_back("run " + message(e)); });
    // An executor that has stopped holds nobody up.
    EXPECT_EQ(test::append(*store, "order-2").first, GlobalSequence{1});
  }
  EXPECT_THAT(ended, ElementsAre("a cancelled", "run cancelled"));
  executor.run_all();
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

TEST_F(Asynchronously, AnswersWithTheFailureOfTheExecutor) {
  AsyncStore async{*store, by_hand()};
  executor.is_broken = true;
  append(async, "a");
  async.run([] {}, [this](const std::exception_ptr& e) { ended.push_back("run " + message(e)); });
  executor.is_broken = false;
  append(async, "b");
  executor.run_all();

  EXPECT_THAT(ended, ElementsAre("a no thread to be had", "run no thread to be had", "b 1"));
}

TEST_F(Asynchronously, GoesOnWithoutAnotherThreadWhereThereIsNone) {
  AsyncStore async{*store, by_hand()};
  for (int i = 0; i < 600; ++i) append(async, "a");
  executor.is_broken = true;
  executor.run_all();

  EXPECT_EQ(ended.size(), 600U);
  EXPECT_EQ(ended.back(), "a 600");
}

TEST_F(Asynchronously, FailsWithStoreBusyWhereALineIsHeld) {
  AsyncStore async{*store, by_hand()};
  append(async, "a");
  store->transact([&](Transaction&) { std::jthread{[&] { executor.run_all(); }}.join(); });
  EXPECT_THAT(ended, ElementsAre("a store_busy"));

  append(async, "b");
  store->transact([&](Transaction&) { executor.run_all(); });
  EXPECT_THAT(ended, ElementsAre("a store_busy", "b usage"));
}

TEST_F(Asynchronously, RunsFunctionsInTheContextOfTheCall) {
  AsyncStore async{*store, by_hand()};
  std::vector<std::string> said;
  const auto done = [&](const std::exception_ptr& error, const std::string& actor) {
    said.push_back(error ? message(error) : actor);
  };
  {
    const ContextScope scope{{.actor = "jane"}};
    const Context joe{.actor = "joe"};
    async.run([] { return current_context().actor; }, done);
    async.run([] { return current_context().actor; }, done, {.context = &joe});
    async.run([]() -> std::string { throw std::runtime_error{"no"}; }, done);
  }
  executor.run_all();

  EXPECT_THAT(said, ElementsAre("jane", "joe", "no"));
}

TEST_F(Asynchronously, WaitsForWhatHasBegunWhenItEnds) {
  asio::thread_pool pool{1};
  std::promise<void> begun;
  std::promise<void> ending;
  std::atomic<bool> is_told{false};
  {
    AsyncStore async{*store, detail::post_on(pool)};
    async.run(
        [&] {
          begun.set_value();
          EXPECT_EQ(ending.get_future().wait_for(30s), std::future_status::ready);
        },
        [&](const std::exception_ptr& error) { is_told = error == nullptr; });
    // The only thread is busy, so that the end refuses this one before it waits for the first.
    async.run([] {}, [&](const std::exception_ptr&) { ending.set_value(); });
    begun.get_future().wait();
  }
  EXPECT_TRUE(is_told);
}

TEST_F(Asynchronously, RefusesOptionsThatCannotBe) {
  EXPECT_THROW((AsyncStore{*store, by_hand(), {.in_flight = 0}}), UsageError);
  EXPECT_THROW((AsyncStore{*store, nullptr}), UsageError);
}

/// Callers, cancellations, blocking appends and the end, all at once.
TEST_F(Asynchronously, AnswersEachCallOnceWhateverHappens) {
  constexpr int callers = 4;
  constexpr int calls = 300;
  std::atomic<int> committed{0};
  std::atomic<int> refused{0};
  std::atomic<int> other{0};
  asio::thread_pool pool{3};
  {
    std::optional<AsyncStore> async{std::in_place, *store, detail::post_on(pool),
                                    AsyncOptions{.in_flight = 200}};
    std::vector<std::jthread> threads;
    for (int t = 0; t < callers; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < calls; ++i) {
          std::stop_source stop;
          async->append(
              make_append("order-" + std::to_string(t)),
              [&](const std::exception_ptr& error, const AppendResult& result) {
                if (error == nullptr && result.first.value() > 0) {
                  ++committed;
                } else if (message(error) == "cancelled" || message(error) == "store_busy") {
                  ++refused;
                } else {
                  ++other;
                }
              },
              {.waits = i % 2 == 0, .stop = stop.get_token()});
          if (i % 3 == 0) stop.request_stop();
          if (i % 50 == 0) test::append(*store, "blocking-1");
        }
      });
    }
    threads.clear();
    async.reset();
  }
  pool.join();

  EXPECT_EQ(other, 0);
  EXPECT_EQ(committed + refused, callers * calls);
  EXPECT_EQ(store->last_sequence().value(), committed + callers * calls / 50);
}

// --- with Boost.Asio

TEST_F(Asynchronously, ResumesACoroutineOnItsOwnExecutor) {
  asio::thread_pool pool{2};
  asio::io_context loop{1};
  Async async{*store, pool};
  const std::thread::id loop_thread = std::this_thread::get_id();
  const auto serve = [&]() -> asio::awaitable<void> {
    // The request is gone when the coroutine awaits.
    auto placing = [&] {
      const StreamId id = StreamId::parse("order-1");
      const NewEvent event{"noted", 1, false, "{}"};
      const StreamAppend one{id, ExpectedVersion::none(), {&event, 1}};
      const ContextScope scope{{.actor = "jane"}};
      return async.append({.streams = {&one, 1}}, asio::use_awaitable);
    }();
    const AppendResult placed = co_await std::move(placing);
    ended.push_back("placed " + std::to_string(placed.first.value()));
    if (std::this_thread::get_id() != loop_thread) ended.emplace_back("on another thread");
    const std::string actor = co_await async.run(
        [&] {
          for (const StoredEvent& event : store->read_all()) return event.context().actor;
          return std::string{};
        },
        asio::use_awaitable);
    ended.push_back("by " + actor);
    try {
      co_await async.run([] { throw std::runtime_error{"no"}; }, asio::use_awaitable);
    } catch (const std::runtime_error& e) {
      ended.emplace_back(e.what());
    }
  };
  asio::co_spawn(loop, serve, asio::detached);
  // It doesn't run out of work meanwhile.
  loop.run();

  EXPECT_THAT(ended, ElementsAre("placed 1", "by jane", "no"));
}

TEST_F(Asynchronously, BeginsNoThreadForAFuture) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                         std::filesystem::directory_iterator{});
  };
  asio::thread_pool pool{1};
  Async async{*store, pool};
  const auto before = threads();
  EXPECT_EQ(async.append(make_append("order-1").request(), asio::use_future).get().first,
            GlobalSequence{1});
  EXPECT_EQ(async.run([] { return 7; }, asio::use_future).get(), 7);
  async.run([] {}, asio::use_future).get();

  EXPECT_EQ(threads(), before);
}

TEST_F(Asynchronously, NeverCallsAHandlerInsideTheCall) {
  asio::io_context loop{1};
  std::vector<std::string> said;
  std::optional<Async> async{std::in_place, *store, executor, AsyncOptions{.in_flight = 1}};
  const auto handler = [&](std::string name) {
    return [&said, name](const std::exception_ptr& error, const AppendResult&) {
      said.push_back(name + ' ' + (error ? message(error) : "appended"));
    };
  };
  const OwnedAppend request = make_append("order-1");
  async->append(request.request(), asio::bind_executor(loop, handler("a")));
  async->append(request.request(), asio::bind_executor(loop, handler("b")));
  async->append(request.request(), handler("c"));
  EXPECT_THAT(said, ElementsAre());
  loop.poll();
  EXPECT_THAT(said, ElementsAre("b store_busy"));
  executor.run_all();
  EXPECT_THAT(said, ElementsAre("b store_busy", "c store_busy"));
  loop.run();
  EXPECT_THAT(said, ElementsAre("b store_busy", "c store_busy", "a appended"));
}

TEST_F(Asynchronously, IsAnsweredOfAPoolThatWasStopped) {
  asio::thread_pool pool{1};
  asio::io_context loop{1};
  std::promise<void> release;
  std::promise<void> begun;
  asio::post(pool, [&] {
    begun.set_value();
    release.get_future().wait();
  });
  begun.get_future().wait();
  {
    Async async{*store, pool};
    async.append(make_append("order-1").request(), asio::bind_executor(loop, note("a")));
    pool.stop();
    release.set_value();
    pool.join();
    EXPECT_EQ(test::append(*store, "order-2").first, GlobalSequence{1});
  }
  loop.run();

  EXPECT_THAT(ended, ElementsAre("a cancelled"));
  EXPECT_EQ(store->last_sequence(), GlobalSequence{1});
}

}  // namespace
}  // namespace stela::test::async_test
