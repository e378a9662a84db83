// Processes that work side by side and are killed again and again.
#pragma once

#include "support/process.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>

namespace stela::test {

struct KilledPairs {
  bool is_done = false;
  int deaths = 0;
};

/// Runs two processes at a time until `is_done`, and two more whenever both are dead. What each of
/// them does, `next` says.
inline KilledPairs run_killed_pairs(const std::function<std::function<void()>()>& next,
                                    const std::function<bool()>& is_done) {
  using namespace std::chrono_literals;
  KilledPairs pairs;
  const auto run_two = [&] {
    Process one{next()};
    Process two{next()};
    eventually(
        [&] {
          const bool one_lives = one.is_running();
          return is_done() || (!two.is_running() && !one_lives);
        },
        20s);
    for (Process* const process : {&one, &two}) {
      if (process->is_running()) continue;
      EXPECT_EQ(process->wait(), 128 + SIGKILL);
      ++pairs.deaths;
    }
    return is_done();
  };
  pairs.is_done = eventually(run_two, 120s);
  return pairs;
}

}  // namespace stela::test
