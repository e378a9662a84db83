// Processes that register a changed inline projector while another one is catching it up.
#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stela::catching_up_test {
namespace {

using test::place;
using test::standing;
using test::Totals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// More than what is projected in the transaction that takes over.
constexpr int events = 1500;

/// A second passes whenever somebody asks for the time.
class PassingClock final : public Clock {
 public:
  explicit PassingClock(bool wall_passes) : wall_passes_{wall_passes} {}

  Timestamp now() const override {
    if (!wall_passes_) return testing::ManualClock::start;
    return testing::ManualClock::start + std::chrono::seconds{++wall_};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point{std::chrono::seconds{++steady_}};
  }

 private:
  const bool wall_passes_;
  mutable std::atomic<int> wall_{0};
  mutable std::atomic<int> steady_{0};
};

class CatchingUp : public ::testing::Test {
 protected:
  CatchingUp() {
    auto store = test::open_at(path);
    Projections projections{store};
    projections.add_inline(Totals<1>{});
    store.transact([&](Transaction& transaction) {
      for (int i = 0; i < events; ++i) {
        auto order = test::Order::place(Id<test::Order>::from(std::to_string(i)), "jane", 1);
        Repository<test::Order>{transaction}.save(order);
      }
    });
  }

  /// What a process leaves that was killed while it filled the tables of version 2.
  void leave_half_built(Timestamp lease_until) {
    const auto poison = std::make_shared<std::vector<std::int64_t>>(1, 1);
    auto store = test::open_at(path);
    Projections projections{store};
    EXPECT_ANY_THROW(projections.add_inline(Totals<2>{test::throwing_at(poison)}));
    rows("UPDATE projections SET owner = 'killed', lease_until = " +
         std::to_string(lease_until.time_since_epoch().count()) + " WHERE state = 'building'");
  }

  std::vector<std::string> rows(const std::string& sql) const {
    return test::is_on_postgres() ? test::run_on_postgres(path, sql)
                                  : test::RawSqlite{path}.rows(sql);
  }

  test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("a.db");
};

TEST_F(CatchingUp, IsTakenOverFromAKilledProcessWhenItsLeaseHasRunOut) {
  leave_half_built(testing::ManualClock::start + std::chrono::seconds{15});
  const PassingClock clock{true};
  auto store = test::open_at(path, {.clock = &clock});
  Projections projections{store};

  projections.add_inline(Totals<2>{});

  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1500", "totals@2 v2 living 1500"));
}

TEST_F(CatchingUp, IsRetryableIfTheOtherProcessMakesNoProgress) {
  leave_half_built(testing::ManualClock::start + std::chrono::seconds{15});
  const PassingClock clock{false};
  auto store = test::open_at(path, {.clock = &clock});
  Projections projections{store};

  EXPECT_THAT(test::message_of<StoreBusy>([&] { projections.add_inline(Totals<2>{}); }),
              HasSubstr("projector 'totals' v2 is being caught up by killed"));
}

TEST_F(CatchingUp, IsWaitedForByEveryProcessThatRegistersIt) {
  constexpr int processes = 4;
  std::latch start{processes};
  std::mutex mutex;
  std::vector<std::string> failures;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < processes; ++i) {
      threads.emplace_back([&, i] {
        auto store = test::open_at(path, {.busy_timeout = std::chrono::minutes{1}});
        Projections projections{store};
        start.arrive_and_wait();
        try {
          projections.add_inline(Totals<2>{});
          place(store, "of-" + std::to_string(i));
        } catch (const std::exception& e) {
          const std::lock_guard lock{mutex};
          failures.emplace_back(e.what());
        }
      });
    }
  }

  EXPECT_THAT(failures, IsEmpty());
  auto store = test::open_at(path);
  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1500", "totals@2 v2 living 1504"));
}

TEST_F(CatchingUp, IsLeftToTheNextProcessByOneThatFails) {
  const auto poison = std::make_shared<std::vector<std::int64_t>>(1, 1);
  auto store = test::open_at(path);
  Projections projections{store};
  EXPECT_ANY_THROW(projections.add_inline(Totals<2>{test::throwing_at(poison)}));

  EXPECT_EQ(rows("SELECT owner FROM projections WHERE state = 'building'"),
            std::vector<std::string>{"NULL"});
}

TEST_F(CatchingUp, GivesARebuildThatWasWaitedForToEveryProcess) {
  leave_half_built(testing::ManualClock::start + std::chrono::seconds{15});
  const PassingClock clock{true};
  auto store = test::open_at(path, {.clock = &clock});
  Projections projections{store};

  projections.add_inline(Totals<2>{}, {.rebuild = true});

  EXPECT_THAT(standing(store), ElementsAre("totals@1 v1 retired 1500", "totals@2 v2 living 1500"));
}

}  // namespace
}  // namespace stela::catching_up_test
