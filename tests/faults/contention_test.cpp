// Two processes and 64 threads append to the same streams.
#include "faults/evidence.hpp"
#include "faults/settings.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace stela::contention_test {
namespace {

using test::append;
using test::Entry;

constexpr int processes = 2;
constexpr int threads_of_each = 32;
constexpr int streams = 6;
constexpr std::size_t room = 400'000;

/// Who was told that which version of which stream is theirs.
struct Win {
  std::int8_t stream;
  std::int64_t version;
  std::int64_t sequence;
  std::int64_t number;
};

struct Arena {
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> conflicts{0};
  std::array<std::atomic<std::int64_t>, processes> wins_of_each{};
  std::atomic<std::size_t> wins{0};
  std::array<Win, room> win{};
};

std::string stream_name(int stream) {
  return "order-" + std::to_string(stream);
}

std::string payload_of(std::int64_t number) {
  return R"({"number":)" + std::to_string(number) + '}';
}

/// Appends at the version that it believes the stream to be at, and learns from each conflict.
void contend(Store& store, Arena& arena, int process, int thread) {
  test::Dice dice{
      test::mix(static_cast<std::uint64_t>(process), static_cast<std::uint64_t>(thread))};
  std::array<std::int64_t, streams> versions{};
  for (std::int64_t i = 1; !arena.stop; ++i) {
    const auto stream = static_cast<int>(dice.below(streams));
    auto& version = versions[static_cast<std::size_t>(stream)];
    const std::int64_t number = (process * 100 + thread) * 10'000'000LL + i;
    try {
      const AppendResult result = append(store, {{StreamId::parse(stream_name(stream)),
                                                  ExpectedVersion::exactly(StreamVersion{version}),
                                                  {payload_of(number)}}});
      const std::int64_t got = result.versions.front().value();
      if (got != version + 1) throw std::runtime_error{"the version isn't the next one"};
      version = got;
      const std::size_t at = arena.wins++;
      if (at >= room) throw std::runtime_error{"more wins than there is room for"};
      arena.win[at] = {static_cast<std::int8_t>(stream), got, result.first.value(), number};
      ++arena.wins_of_each[static_cast<std::size_t>(process)];
    } catch (const ConcurrencyConflict& e) {
      if (e.actual().value() <= version) throw std::runtime_error{"a conflict with nobody"};
      version = e.actual().value();
      ++arena.conflicts;
    }
  }
}

void run_process(const std::string& path, Arena& arena, int process) {
  auto store = sqlite::open(path, {.busy_timeout = std::chrono::seconds{60}});
  ++arena.ready;
  while (arena.ready < processes) std::this_thread::yield();
  std::atomic<bool> failed{false};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < threads_of_each; ++thread) {
      threads.emplace_back([&, thread] {
        try {
          contend(store, arena, process, thread);
        } catch (const std::exception& e) {
          std::cerr << "process " << process << ": " << e.what() << '\n';
          failed = true;
          arena.stop = true;
        }
      });
    }
  }
  if (failed) throw std::runtime_error{"a thread failed"};
}

void expect_every_win_in(const std::vector<Entry>& entries, const Arena& arena) {
  ASSERT_EQ(entries.size(), arena.wins);
  std::vector<bool> taken(entries.size());
  for (std::size_t i = 0; i < arena.wins; ++i) {
    const Win& win = arena.win[i];
    const auto at = static_cast<std::size_t>(win.sequence - 1);
    ASSERT_LT(at, entries.size());
    ASSERT_FALSE(taken[at]) << "two were told that event " << win.sequence << " is theirs";
    taken[at] = true;
    const Entry expected{win.sequence, stream_name(win.stream), win.version,
                         payload_of(win.number)};
    ASSERT_EQ(entries[at], expected);
  }
}

TEST(Contention, HasOneWinnerPerVersionAndAConflictForTheOthers) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  (void)sqlite::open(path, {.durability = sqlite::Durability::relaxed});
  const test::Shared<Arena> arena;
  {
    std::vector<std::unique_ptr<test::Process>> running;
    for (int process = 0; process < processes; ++process) {
      running.push_back(
          std::make_unique<test::Process>([&, process] { run_process(path, *arena, process); }));
    }
    const auto is_over = [&] { return arena->stop || arena->wins > room - 20'000; };
    test::eventually(is_over, std::chrono::seconds{6});
    arena->stop = true;
    for (const auto& process : running) EXPECT_EQ(process->wait(), 0);
  }

  auto store = sqlite::open(path);
  const std::vector<Entry> entries = test::entries_of(store);
  EXPECT_EQ(test::flaw_in(entries), "");
  expect_every_win_in(entries, *arena);
  EXPECT_EQ(test::integrity_of(path), "ok");
  EXPECT_GT(arena->conflicts, 100);
  std::cout << arena->wins << " appends, " << arena->conflicts << " conflicts; by process:";
  for (const auto& wins : arena->wins_of_each) {
    const double share = static_cast<double>(wins) / static_cast<double>(arena->wins);
    std::cout << ' ' << static_cast<int>(share * 100) << " %";
    EXPECT_GE(share, 0.05) << "one process starves the other";
  }
  std::cout << '\n';
}

}  // namespace
}  // namespace stela::contention_test
