// Waits for projectors that block no thread, on executors that the tests drive by hand.
// Boost 1.74 needs it before asio.
#include <utility>

#include "projections/models.hpp"
#include "support/messages.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/projections/asio.hpp>

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

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#ifdef __SANITIZE_THREAD__
// Those who wait share an exception, and whoever is last frees it. That count is in the standard
// library, which ThreadSanitizer doesn't see into.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace stela::waits_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::Counts;
using test::place;
using test::Totals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const std::exception_ptr& error, bool is_there) {
  if (!error) return is_there ? "there" : "late";
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string{to_string(e.code())} + ": " + e.what();
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Runs what it is given when the test says so, and what it is given for later when that is asked
/// for. Threads: one.
struct ByHand {
  ProjectionWaits::Post post() {
    return [this](ProjectionWaits::Task task) {
      if (is_broken) throw std::runtime_error{"no thread to be had"};
      tasks.push_back(std::move(task));
    };
  }
  ProjectionWaits::PostAfter post_after() {
    return [this](std::chrono::nanoseconds delay, ProjectionWaits::Task task) {
      timers.emplace_back(delay, std::move(task));
    };
  }
  void run_all() {
    while (!tasks.empty()) {
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }
  /// As if their time had come.
  void run_timers() {
    for (const auto& [delay, task] : std::exchange(timers, {})) task();
  }

  std::deque<ProjectionWaits::Task> tasks;
  std::vector<std::pair<std::chrono::nanoseconds, ProjectionWaits::Task>> timers;
  bool is_broken = false;
};

class Waits : public ::testing::Test {
 protected:
  Waits() { projections.add(Totals<1>{}); }

  /// Notes how it ends.
  void wait(ProjectionWaits& waits, std::string name, std::int64_t sequence,
            std::chrono::milliseconds timeout = 1h, const std::stop_token& stop = {},
            std::string projector = "totals") {
    waits.wait_for(
        std::move(projector), GlobalSequence{sequence}, timeout,
        [this, name = std::move(name)](const std::exception_ptr& error, bool is_there) {
          ended.push_back(name + ' ' + text_of(error, is_there));
        },
        stop);
  }
  void catch_up() { Runner{projections}.run_once(); }

  test::TempDir dir = test::TempDir::in_memory();
  std::string path = dir.file("a.db");
  Store store = test::open_at(path);
  Projections projections{store};
  ByHand executor;
  std::vector<std::string> ended;
};

TEST_F(Waits, AreAnsweredTogetherByOneLook) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  place(store, "1");
  place(store, "2");
  wait(waits, "a", 1);
  wait(waits, "b", 2);
  wait(waits, "c", 3);
  EXPECT_EQ(executor.tasks.size(), 1U);
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre());
  EXPECT_EQ(executor.timers.size(), 1U);
  EXPECT_EQ(waits.waiting(), 3U);

  catch_up();
  EXPECT_EQ(executor.tasks.size(), 1U) << "the runner's commit wakes them";
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre("a there", "b there"));
  EXPECT_EQ(waits.waiting(), 1U);
}

TEST_F(Waits, AreAnsweredAtOnceIfTheProjectorIsThere) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  place(store, "1");
  catch_up();
  EXPECT_THAT(executor.tasks.size(), 0U) << "nobody waits";
  wait(waits, "a", 1, 0ms);
  EXPECT_THAT(ended, ElementsAre()) << "not inside the call";
  executor.run_all();

  EXPECT_THAT(ended, ElementsAre("a there"));
  EXPECT_EQ(executor.timers.size(), 0U) << "nobody looks while nobody waits";
}

TEST_F(Waits, SeeByATimerWhatOtherRunnersDo) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  place(store, "1");
  wait(waits, "a", 1);
  executor.run_all();
  // The longest pause; a shorter one is a matter of how long the look took.
  EXPECT_LE(executor.timers.at(0).first, 20ms);
  Projections elsewhere{store};
  elsewhere.add(Totals<1>{});
  Runner{elsewhere}.run_once();
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre());

  executor.run_timers();
  EXPECT_THAT(ended, ElementsAre("a there"));
  EXPECT_EQ(executor.timers.size(), 0U);
}

TEST_F(Waits, EndAtTheirDeadlines) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  place(store, "1");
  wait(waits, "a", 1, 0ms);
  wait(waits, "b", 1, std::chrono::milliseconds::min());
  wait(waits, "c", 1, std::chrono::milliseconds::max());
  executor.run_all();

  EXPECT_THAT(ended, ElementsAre("a late", "b late"));
  EXPECT_EQ(waits.waiting(), 1U);
}

TEST_F(Waits, EndWhereTheProjectorIsHalted) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  auto broken = std::make_shared<std::vector<std::int64_t>>(1, 2);
  Projections failing{store};
  failing.add(Totals<1>{test::throwing_at(broken)}, {.max_attempts = 1});
  place(store, "1");
  place(store, "2");
  Runner{failing}.run_once();
  wait(waits, "a", 1);
  wait(waits, "b", 2);
  executor.run_all();

  EXPECT_THAT(ended, ElementsAre("a there", "b late"));
}

TEST_F(Waits, FailAsTheBlockingCallDoes) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  const auto blocking = [&](std::string_view projector) {
    return test::message_of<Error>(
        [&] { (void)projections.wait_for(projector, GlobalSequence{1}, 0ms); });
  };
  wait(waits, "a", 1, 1h, {}, "nobody");
  wait(waits, "b", 1);
  executor.run_all();
  EXPECT_THAT(ended, ElementsAre("a usage: " + blocking("nobody")));

  const std::string sql = "ALTER TABLE projections RENAME TO gone";
  if (test::is_on_postgres()) {
    test::run_on_postgres(path, sql);
  } else {
    test::RawSqlite{path}.run(sql);
  }
  wait(waits, "c", 1);
  executor.run_all();
  EXPECT_THAT(ended.at(1), HasSubstr(blocking("totals")));
  EXPECT_THAT(ended.at(2), HasSubstr(blocking("totals")));
}

TEST_F(Waits, CanBeStopped) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  std::stop_source early;
  std::stop_source later;
  std::stop_source late;
  early.request_stop();
  place(store, "1");
  wait(waits, "a", 1, 1h, early.get_token());
  wait(waits, "b", 1, 1h, later.get_token());
  wait(waits, "c", 1, 1h, late.get_token());
  later.request_stop();
  EXPECT_THAT(ended, ElementsAre(HasSubstr("a cancelled"), HasSubstr("b cancelled")));
  catch_up();
  executor.run_all();
  late.request_stop();

  EXPECT_THAT(ended, ElementsAre(HasSubstr("a cancelled"), HasSubstr("b cancelled"), "c there"));
}

TEST_F(Waits, AreRefusedWhereTooManyWait) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after(), {.waiting = 1}};
  wait(waits, "a", 1);
  wait(waits, "b", 1);

  EXPECT_THAT(ended, ElementsAre(HasSubstr("b store_busy: 1 callers wait")));
  const WaitsOptions none{.waiting = 0};
  EXPECT_THROW((ProjectionWaits{projections, executor.post(), executor.post_after(), none}),
               UsageError);
  EXPECT_THROW((ProjectionWaits{projections, nullptr, executor.post_after()}), UsageError);
  EXPECT_THROW((ProjectionWaits{projections, executor.post(), nullptr}), UsageError);
}

TEST_F(Waits, AreAnsweredWhenTheObjectEnds) {
  {
    ProjectionWaits waits{projections, executor.post(), executor.post_after()};
    wait(waits, "a", 1);
    executor.run_all();
    wait(waits, "b", 1);
  }
  EXPECT_THAT(ended, ElementsAre(HasSubstr("a cancelled"), HasSubstr("b cancelled")));
  // What an executor does afterwards, and a runner, comes to nothing.
  executor.run_all();
  executor.run_timers();
  place(store, "1");
  catch_up();
  EXPECT_EQ(executor.tasks.size(), 0U);
}

TEST_F(Waits, AreAnsweredWithTheFailureOfTheExecutor) {
  ProjectionWaits waits{projections, executor.post(), executor.post_after()};
  executor.is_broken = true;
  wait(waits, "a", 1);
  EXPECT_THAT(ended, ElementsAre("a no thread to be had"));
  executor.is_broken = false;
  place(store, "1");
  catch_up();
  wait(waits, "b", 1);
  executor.run_all();

  EXPECT_THAT(ended, ElementsAre("a no thread to be had", "b there"));
}

TEST_F(Waits, FailInAForkedChild) {
  std::optional<ProjectionWaits> waits{std::in_place, projections, executor.post(),
                                       executor.post_after()};
  const pid_t child = fork();
  if (child == 0) {
    wait(*waits, "a", 1);
    waits.reset();
    const bool is_refused = ended.size() == 1 && ended[0].starts_with("a usage: a forked process");
    _exit(is_refused && executor.tasks.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// --- with Boost.Asio

TEST_F(Waits, ResumeACoroutineOnItsOwnExecutor) {
  asio::thread_pool pool{1};
  asio::io_context loop{1};
  AsyncProjections models{projections, pool};
  std::jthread running{[&](std::stop_token stop) { Runner{projections}.run(std::move(stop)); }};
  const std::thread::id loop_thread = std::this_thread::get_id();
  const auto serve = [&]() -> asio::awaitable<void> {
    place(store, "1");
    const bool is_there =
        co_await models.wait_for("totals", store.last_sequence(), 30s, asio::use_awaitable);
    ended.push_back(text_of({}, is_there));
    if (std::this_thread::get_id() != loop_thread) ended.emplace_back("on another thread");
    try {
      (void)co_await models.wait_for("nobody", GlobalSequence{1}, 30s, asio::use_awaitable);
    } catch (const UsageError& e) {
      ended.emplace_back(e.what());
    }
    std::stop_source stop;
    stop.request_stop();
    try {
      (void)co_await models.wait_for("totals", GlobalSequence{9}, 30s, stop.get_token(),
                                     asio::use_awaitable);
    } catch (const Cancelled&) {
      ended.emplace_back("cancelled");
    }
  };
  asio::co_spawn(loop, serve, asio::detached);
  // It doesn't run out of work meanwhile.
  loop.run();

  EXPECT_THAT(ended, ElementsAre("there", HasSubstr("no projector 'nobody'"), "cancelled"));
}

TEST_F(Waits, KeepTheirDeadlinesByTimersOfThePool) {
  asio::thread_pool pool{1};
  AsyncProjections models{projections, pool};
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(models.wait_for("totals", GlobalSequence{1}, 30ms, asio::use_future).get());
  EXPECT_GE(std::chrono::steady_clock::now(), begun + 30ms);
}

TEST_F(Waits, TenThousandNeedOneThread) {
  constexpr int count = 10'000;
  constexpr int events = 100;
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                         std::filesystem::directory_iterator{});
  };
  asio::thread_pool pool{1};
  AsyncProjections models{projections, pool};
  const auto before = threads();
  std::vector<std::future<bool>> all;
  for (int i = 0; i < count; ++i) {
    const GlobalSequence sequence{i % events + 1};
    all.push_back(models.wait_for("totals", sequence, 5min, asio::use_future));
  }
  EXPECT_EQ(models.waiting(), std::size_t{count});
  EXPECT_EQ(threads(), before);
  for (int i = 0; i < events; ++i) place(store, std::to_string(i));
  catch_up();

  int there = 0;
  for (auto& one : all) there += one.get() ? 1 : 0;
  EXPECT_EQ(there, count);
  EXPECT_EQ(models.waiting(), 0U);
}

/// Callers, cancellations, deadlines, a runner and the end, all at once.
TEST_F(Waits, AreAnsweredOnceWhateverHappens) {
  constexpr int callers = 3;
  constexpr int calls = 300;
  std::atomic<int> there{0};
  std::atomic<int> late{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> other{0};
  asio::thread_pool pool{2};
  std::jthread running{[&](std::stop_token stop) { Runner{projections}.run(std::move(stop)); }};
  {
    std::optional<ProjectionWaits> waits{std::in_place, projections, detail::post_on(pool),
                                         detail::post_after_on(pool)};
    std::vector<std::jthread> threads;
    for (int t = 0; t < callers; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < calls; ++i) {
          std::stop_source stop;
          waits->wait_for(
              "totals", GlobalSequence{i / 10 + 1}, i % 4 == 0 ? 0ms : 5min,
              [&](const std::exception_ptr& error, bool is_there) {
                const std::string text = text_of(error, is_there);
                if (text == "there") {
                  ++there;
                } else if (text == "late") {
                  ++late;
                } else if (text.starts_with("cancelled")) {
                  ++cancelled;
                } else {
                  ++other;
                }
              },
              stop.get_token());
          if (i % 3 == 0) stop.request_stop();
          if (i % 20 == 0) place(store, std::to_string(t) + '-' + std::to_string(i));
        }
      });
    }
    threads.clear();
    waits.reset();
  }

  EXPECT_EQ(other, 0);
  EXPECT_EQ(there + late + cancelled, callers * calls);
  pool.join();
}

}  // namespace
}  // namespace stela::waits_test
