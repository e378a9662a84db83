// The queue alone, with many threads: what makes group commit sound.
#include "commit_queue.hpp"
#include "support/messages.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stela::commit_queue_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One piece of work that notes who carried it out, and how often.
struct Work : CommitQueue::Ticket {
  int times = 0;
  std::thread::id by;
};

/// Carries a group out and notes what must not be.
struct Executor {
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> strangers{0};
  std::atomic<int> crowded{0};

  void submit(CommitQueue& queue, Work& own) {
    int groups = 0;
    queue.submit(own, [&](std::span<CommitQueue::Ticket* const> group) {
      if (inside.fetch_add(1) != 0) ++overlaps;
      if ((group.front() == &own) != (groups == 0)) ++strangers;
      if (++groups > CommitQueue::max_groups) ++crowded;
      std::size_t bytes = 0;
      for (CommitQueue::Ticket* const ticket : group) {
        Work& work = *static_cast<Work*>(ticket);
        ++work.times;
        work.by = std::this_thread::get_id();
        bytes += work.bytes;
        if (work.exclusive && group.size() > 1) ++crowded;
      }
      if (group.size() > CommitQueue::max_group_size) ++crowded;
      if (group.size() > 1 && bytes > CommitQueue::max_group_bytes) ++crowded;
      --inside;
    });
  }
};

/// Each thread submits `rounds` pieces of work that `make` prepares.
template <class Make>
void expect_each_once(int threads, int rounds, Make make) {
  CommitQueue queue;
  Executor executor;
  std::atomic<int> wrong{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        Work work;
        make(work, t + i);
        executor.submit(queue, work);
        if (work.times != 1) ++wrong;
        if (work.exclusive && work.by != std::this_thread::get_id()) ++wrong;
      }
    });
  }
  workers.clear();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(executor.overlaps, 0);
  EXPECT_EQ(executor.strangers, 0);
  EXPECT_EQ(executor.crowded, 0);
}

TEST(CommitQueue, LetsALoneCallerLeadAtOnce) {
  CommitQueue queue;
  Work work;
  std::size_t size = 0;
  bool leads = false;
  queue.submit(work, [&](auto group) {
    size = group.size();
    leads = queue.is_leading();
  });

  EXPECT_EQ(size, 1U);
  EXPECT_TRUE(leads);
  EXPECT_FALSE(queue.is_leading());
}

TEST(CommitQueue, CarriesEachPieceOutOnceAndNeverTwoGroupsTogether) {
  expect_each_once(8, 2000, [](Work&, int) {});
}

TEST(CommitQueue, LetsExclusiveWorkRunAloneOnItsOwnThread) {
  expect_each_once(8, 1000, [](Work& work, int n) { work.exclusive = n % 3 == 0; });
}

TEST(CommitQueue, EndsAGroupWhereItGetsTooLarge) {
  expect_each_once(8, 1000, [](Work& work, int n) {
    work.bytes = n % 2 == 0 ? CommitQueue::max_group_bytes : CommitQueue::max_group_bytes / 3;
  });
}

TEST(CommitQueue, CarriesOutLateArrivalsBeforeItWakesAnyone) {
  CommitQueue queue;
  Work own;
  Work other;
  Work exclusive;
  std::jthread sleeper;
  std::jthread second_sleeper;
  std::vector<CommitQueue::Ticket*> carried_out;
  const auto lead = [&](auto group) {
    carried_out.insert(carried_out.end(), group.begin(), group.end());
    if (carried_out.size() > 1) return;
    sleeper = std::jthread{[&] { queue.submit(other, [](auto) { FAIL(); }); }};
    while (queue.size() < 2) std::this_thread::yield();
    second_sleeper = std::jthread{
        [&] { queue.submit(exclusive, [&](auto) { exclusive.by = std::this_thread::get_id(); }); }};
    while (queue.size() < 3) std::this_thread::yield();
  };
  exclusive.exclusive = true;

  queue.submit(own, lead);
  const std::thread::id its_own = second_sleeper.get_id();
  sleeper.join();
  second_sleeper.join();

  EXPECT_EQ(carried_out, (std::vector<CommitQueue::Ticket*>{&own, &other}));
  EXPECT_EQ(exclusive.by, its_own);
}

TEST(CommitQueue, MovesOnBeforeAGroupIsComplete) {
  CommitQueue queue{1};
  Work own;
  Work other;
  int carried_out = 0;
  queue.submit_phases(
      own, [](auto) { return CommitQueue::Left::completion; },
      [&](auto) {
        EXPECT_FALSE(queue.is_leading());
        // It waits for nobody's completion.
        std::jthread{[&] { queue.submit(other, [&](auto) { ++carried_out; }); }}.join();
      });

  EXPECT_EQ(carried_out, 1);
}

/// Each caller finds its work complete when it returns.
TEST(CommitQueue, ReturnsNobodyBeforeItsGroupIsComplete) {
  struct Phased : Work {
    std::atomic<int> completions{0};
  };
  CommitQueue queue{1};
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < 8; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        Phased own;
        own.exclusive = (t + i) % 5 == 0;
        queue.submit_phases(
            own,
            [&](std::span<CommitQueue::Ticket* const> group) {
              if (inside.fetch_add(1) != 0 || group.front() != &own) ++wrong;
              for (CommitQueue::Ticket* const ticket : group) ++static_cast<Phased*>(ticket)->times;
              --inside;
              if (!group.front()->exclusive) return CommitQueue::Left::completion;
              ++own.completions;
              return CommitQueue::Left::nothing;
            },
            [&](std::span<CommitQueue::Ticket* const> group) {
              std::this_thread::yield();
              for (CommitQueue::Ticket* const ticket : group) {
                ++static_cast<Phased*>(ticket)->completions;
              }
            });
        if (own.times != 1 || own.completions != 1) ++wrong;
      }
    });
  }
  workers.clear();

  EXPECT_EQ(wrong, 0);
}

/// Work that is shared by those who stand in line for it.
struct SharedWork : CommitQueue::Source {
  CommitQueue::Ticket* take(std::size_t bytes) noexcept override {
    const std::lock_guard lock{mutex};
    if (next == works.size() || works[next].bytes > bytes) return nullptr;
    return &works[next++];
  }

  std::mutex mutex;
  std::deque<Work> works;
  std::size_t next = 0;
};

/// The sizes of the groups in which one caller carries out `count` pieces of so many bytes.
std::vector<std::size_t> groups_of(std::size_t count, std::size_t bytes, bool exclusive) {
  CommitQueue queue;
  SharedWork shared;
  shared.works.resize(count);
  for (Work& work : shared.works) work.bytes = bytes;
  std::vector<std::size_t> sizes;
  while (shared.next < count) {
    CommitQueue::Ticket turn;
    turn.exclusive = exclusive;
    turn.source = &shared;
    queue.submit(turn, [&](auto group) { sizes.push_back(group.size()); });
  }
  return sizes;
}

TEST(CommitQueue, TakesAsMuchFromASourceAsFitsIntoAGroup) {
  EXPECT_THAT(groups_of(300, 1, false), ElementsAre(256U, 44U));
  EXPECT_THAT(groups_of(3, CommitQueue::max_group_bytes / 2, false), ElementsAre(2U, 1U));
  EXPECT_THAT(groups_of(2, 2 * CommitQueue::max_group_bytes, false), ElementsAre(1U, 1U));
  EXPECT_THAT(groups_of(2, 1, true), ElementsAre(1U, 1U));
}

TEST(CommitQueue, CarriesOutNothingForASourceThatHasRunOut) {
  CommitQueue queue;
  SharedWork shared;
  CommitQueue::Ticket turn;
  turn.source = &shared;
  queue.submit(turn, [](auto) { FAIL(); });

  EXPECT_EQ(queue.size(), 0U);
}

TEST(CommitQueue, TakesFromASourceWhatIsThereWhenItsTurnComes) {
  CommitQueue queue;
  SharedWork shared;
  CommitQueue::Ticket turn;
  turn.source = &shared;
  Work own;
  std::jthread other;
  std::vector<CommitQueue::Ticket*> carried_out;
  queue.submit(own, [&](auto group) {
    carried_out.insert(carried_out.end(), group.begin(), group.end());
    if (carried_out.size() > 1) return;
    other = std::jthread{[&] { queue.submit(turn, [](auto) { FAIL(); }); }};
    while (queue.size() < 2) std::this_thread::yield();
    // It is in line already.
    shared.works.resize(2);
  });
  other.join();

  EXPECT_THAT(carried_out, ElementsAre(&own, &shared.works[0], &shared.works[1]));
}

/// Callers of their own work beside callers who stand in line for the work of others.
TEST(CommitQueue, CarriesOutSharedWorkOnceAndInOrder) {
  constexpr int pieces = 4000;
  CommitQueue queue;
  SharedWork shared;
  shared.works.resize(pieces);
  Executor executor;
  std::atomic<int> wrong{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&, t] {
      for (int i = 0; i < pieces; ++i) {
        Work work;
        work.exclusive = i % 7 == 0;
        if (t % 2 == 0) {
          executor.submit(queue, work);
          if (work.times != 1) ++wrong;
          continue;
        }
        work.source = &shared;
        queue.submit(work, [&](std::span<CommitQueue::Ticket* const> group) {
          if (executor.inside.fetch_add(1) != 0) ++wrong;
          for (CommitQueue::Ticket* const ticket : group) ++static_cast<Work*>(ticket)->times;
          --executor.inside;
        });
        if (work.times != 0) ++wrong;
      }
    });
  }
  workers.clear();

  for (const Work& work : shared.works) {
    if (work.times != 1) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(executor.overlaps, 0);
}

TEST(CommitQueue, GivesUpALineThatIsHeld) {
  CommitQueue queue;
  Work own;
  Work other;
  std::string refusal;
  queue.submit(own, [&](auto) {
    const CommitQueue::Hold hold{queue};
    std::jthread{[&] {
      refusal = test::message_of<StoreBusy>([&] {
        queue.submit(
            other, [](auto) {}, 10ms);
      });
    }}.join();
    EXPECT_EQ(queue.size(), 1U);
  });

  EXPECT_THAT(refusal, HasSubstr("thread " + std::to_string(gettid()) + " ("));
  EXPECT_THAT(refusal, HasSubstr("of this process has held this store's line of writers"));
  EXPECT_EQ(queue.size(), 0U);

  const database::Occupation outer{"consumer 'shipping'"};
  queue.submit(own, [&](auto) {
    const CommitQueue::Hold hold{queue};
    const database::Occupation occupation{"projector 'totals' v1"};
    std::jthread{[&] {
      refusal = test::message_of<StoreBusy>([&] {
        queue.submit(
            other, [](auto) {}, 10ms);
      });
    }}.join();
  });
  EXPECT_THAT(refusal, HasSubstr("projector 'totals' v1 of this process has held this store's "));
  EXPECT_EQ(database::Occupation::of_this_thread().read(), "consumer 'shipping'");
  int carried_out = 0;
  queue.submit(other, [&](auto) { ++carried_out; });
  EXPECT_EQ(carried_out, 1);
}

/// Leads for longer than another thread has patience, and calls `meanwhile` again and again.
template <class Meanwhile>
void expect_waited_for(milliseconds patience, Meanwhile meanwhile) {
  CommitQueue queue;
  Work own;
  Work other;
  std::jthread waiting;
  queue.submit(own, [&](auto group) {
    if (group.front() == &other) return;
    waiting = std::jthread{[&] {
      queue.submit(
          other, [](auto) { FAIL(); }, patience);
    }};
    while (queue.size() < 2) std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + patience * 3 / 2;
    while (std::chrono::steady_clock::now() < until) meanwhile(queue);
    EXPECT_EQ(queue.size(), 2U);
  });
}

TEST(CommitQueue, WaitsForWorkThatEndsByItself) {
  expect_waited_for(20ms, [](CommitQueue&) {});
}

TEST(CommitQueue, WaitsForWorkThatEndsByItselfAfterACallersCode) {
  bool has_held = false;
  expect_waited_for(20ms, [&](CommitQueue& queue) {
    if (!std::exchange(has_held, true)) const CommitQueue::Hold hold{queue};
  });
}

TEST(CommitQueue, WaitsForALineThatMoves) {
  // Each time as if the next piece of work held it.
  expect_waited_for(500ms, [](CommitQueue& queue) {
    const CommitQueue::Hold hold{queue};
    std::this_thread::yield();
  });
}

TEST(CommitQueue, LeadsOnTheThreadThatCarriesOut) {
  CommitQueue queue;
  std::atomic<int> wrong{0};
  std::vector<std::jthread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Work work;
        queue.submit(work, [&](auto) {
          if (!queue.is_leading()) ++wrong;
        });
        if (queue.is_leading()) ++wrong;
      }
    });
  }
  workers.clear();

  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace stela::commit_queue_test
