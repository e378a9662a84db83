// Processes with threads that decide on overlapping boundaries and are killed now and then.
#include "decisions/serialisability.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifdef STELA_WITH_POSTGRES
#include "support/postgres_server.hpp"
#endif

namespace stela::test::killed_deciders_test {
namespace {

constexpr int processes = 3;
constexpr int threads = 2;
constexpr int most_generations = 64;
constexpr int most_decisions = 4000;

/// What the deciders tell the test, and what survives them.
struct Progress {
  std::atomic<std::int64_t> acknowledged{0};
  std::atomic<bool> stop{false};
  /// By generation and thread: how many of its decisions were acknowledged.
  std::array<std::array<std::atomic<int>, threads>, most_generations> done{};
};

using Open = std::function<Store()>;

std::string id_of(int generation, int thread, int number) {
  return std::to_string(generation) + '-' + std::to_string(thread) + '-' + std::to_string(number);
}

void decide_on_and_on(Store& store, Progress& progress, int generation, int thread) {
  std::minstd_rand random{static_cast<unsigned>(generation * threads + thread + 1)};
  for (int number = 0; number < most_decisions && !progress.stop; ++number) {
    const Move move{Id<Room>::from(std::to_string(random() % 4)),
                    Id<Guest>::from(std::to_string(random() % 6))};
    decide(store, {.append_id = id_of(generation, thread, number)}, move);
    progress.done[static_cast<std::size_t>(generation)][static_cast<std::size_t>(thread)] =
        number + 1;
    ++progress.acknowledged;
  }
}

std::unique_ptr<Process> decider(const Open& open, Progress& progress, int generation) {
  return std::make_unique<Process>([&open, &progress, generation] {
    Store store = open();
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) {
      all.emplace_back([&, thread] { decide_on_and_on(store, progress, generation, thread); });
    }
    for (std::thread& one : all) one.join();
  });
}

/// Kills a decider after each `pace` acknowledged decisions, until there were `total`.
int run_deciders(const Open& open, Progress& progress, std::int64_t total, std::int64_t pace) {
  int generation = 0;
  std::vector<std::unique_ptr<Process>> running;
  for (; generation < processes; ++generation) {
    running.push_back(decider(open, progress, generation));
  }
  std::minstd_rand random{7};
  for (std::int64_t next = pace; next < total && generation < most_generations; next += pace) {
    EXPECT_TRUE(
        eventually([&] { return progress.acknowledged >= next; }, std::chrono::seconds{60}));
    const auto victim = random() % processes;
    running[victim]->kill();
    running[victim] = decider(open, progress, generation++);
  }
  progress.stop = true;
  for (const auto& process : running) EXPECT_EQ(process->wait(), 0);
  return generation;
}

void check(Store& store, const Progress& progress, int generations) {
  SerialisabilityChecker checker;
  EXPECT_EQ(checker.check(store), "");
  EXPECT_GT(checker.events(), 100);
  int lost = 0;
  for (int generation = 0; generation < generations; ++generation) {
    for (int thread = 0; thread < threads; ++thread) {
      const int done =
          progress.done[static_cast<std::size_t>(generation)][static_cast<std::size_t>(thread)];
      for (int number = 0; number < done; ++number) {
        if (!store.find_append(id_of(generation, thread, number))) ++lost;
      }
    }
  }
  EXPECT_EQ(lost, 0) << "acknowledged decisions";
}

TEST(KilledDeciders, AreRightAtTheirPlaceOnSqlite) {
  TempDir dir;
  const std::string path = dir.file("shop.db");
  const Open open = [path] {
    return sqlite::open(path, {.durability = sqlite::Durability::relaxed});
  };
  Shared<Progress> progress;
  const int generations = run_deciders(open, *progress, 2000, 150);

  Store store = open();
  check(store, *progress, generations);
  EXPECT_GE(generations, 10);
  int problems = 0;
  StoreOperations{store}.verify([&](const Problem& problem) {
    ++problems;
    ADD_FAILURE() << to_string(problem);
  });
  EXPECT_EQ(problems, 0);
}

#ifdef STELA_WITH_POSTGRES
TEST(KilledDeciders, AreRightAtTheirPlaceOnPostgres) {
  PostgresServer server;
  const std::string url = server.url();
  const Open open = [url] { return postgres::open(url); };
  { Store first = open(); }
  Shared<Progress> progress;
  const int generations = run_deciders(open, *progress, 600, 60);

  Store store = open();
  check(store, *progress, generations);
  EXPECT_GE(generations, 6);
}
#endif

TEST(SerialisabilityChecker, FindsADecisionThatSawAnotherState) {
  Store store = sqlite::open_in_memory();
  const auto room = Id<Room>::from("1");
  UnitOfWork unit{store};
  unit.append(room.stream(), ExpectedVersion::any(), Booked{room, Id<Guest>::from("1"), 0, 0});
  unit.append(room.stream(), ExpectedVersion::any(), Booked{room, Id<Guest>::from("2"), 0, 0});
  unit.commit();

  EXPECT_THAT(SerialisabilityChecker{}.check(store),
              ::testing::HasSubstr("saw 0 guests in the room, and there were 1"));
}

}  // namespace
}  // namespace stela::test::killed_deciders_test
