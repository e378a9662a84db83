// A hotel with one process and the runner of its timers, by a clock of its own.
#pragma once

#include "projections/bookings.hpp"
#include "support/engine.hpp"

#include <stela/testing/manual_clock.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace stela::test {

struct Inn {
  explicit Inn(DueHook on_due = {}, const ReactionOptions& options = {})
      : Inn{PaymentDeadline{std::move(on_due)}, options} {}
  template <class P>
  requires requires { P::process_type; }
  explicit Inn(P process, const ReactionOptions& options = {}) {
    projections.add_process(std::move(process), options);
    runner.emplace(projections, RunnerOptions{.clock_jump_limit = std::chrono::minutes{10}});
  }
  RunnerTick run() { return runner->run_once(); }
  RunnerTick run_after(std::chrono::microseconds time) {
    clock.advance(time);
    return run();
  }

  testing::ManualClock clock;
  Store store = open_empty({.clock = &clock});
  Projections projections{store};
  std::optional<Runner> runner;
};

}  // namespace stela::test
