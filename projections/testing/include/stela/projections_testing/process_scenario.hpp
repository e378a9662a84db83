// Tests of a process: given events, after some time, then further events are recorded.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections/runner.hpp>
#include <stela/projections_testing/export.hpp>
#include <stela/projections_testing/history.hpp>
#include <stela/projections_testing/reaction_scenario.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_keys.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::testing {
namespace detail {

/// A store in memory and the runner of a process, with time that the test controls.
class STELA_PROJECTIONS_TESTING_EXPORT ProcessBench {
 public:
  ProcessBench();

  /// Lets the process handle everything that happened after `mark`.
  void run(GlobalSequence mark);
  /// Lets time pass; each timer fires when it is due.
  void pass(std::chrono::microseconds time);
  void expect_events(const std::vector<std::string>& expected) const;
  void expect_timers(const std::vector<std::string>& expected);
  void expect_failure(std::string_view message) const;

  ManualClock clock;
  MemoryKeys keys;
  Store store;
  Projections projections;

 private:
  void catch_up();
  /// The first error of an event or a timer; empty if there is none.
  std::string error();

  std::optional<Runner> runner_;
  GlobalSequence mark_ = {};
  std::vector<std::string> recorded_;
  std::string error_;
};

}  // namespace detail

/// A process with its timers and the aggregates that it works on, in memory and in virtual time.
/// Each handler is tried once.
///
///     stela::testing::ProcessScenario{PaymentDeadline{}}
///         .given("booking-7", Requested{})
///         .after(15min)
///         .then(stela::testing::on("booking-7", Cancelled{"not paid in time"}));
///
/// Threads: one at a time.
template <ProcessManager P>
class ProcessScenario {
 public:
  explicit ProcessScenario(P process) {
    bench_.projections.add_process(std::move(process),
                                   {.handling = {.on_error = OnError::park, .max_attempts = 1}});
  }

  /// Appends events of one stream, and lets the process handle them: events, variants of events,
  /// vectors of either.
  template <class... Es>
  ProcessScenario& given(const Stream& stream, const Es&... events) {
    bench_.run(detail::append(bench_.store, stream, events...).last);
    return *this;
  }

  /// Lets time pass. Each timer fires when it is due.
  ProcessScenario& after(std::chrono::microseconds time) {
    bench_.pass(time);
    return *this;
  }

  /// Since the last `given` or `after`, the process recorded exactly these events, in this order,
  /// and no handler threw.
  template <class... Expected>
  ProcessScenario& then(const Expected&... expected) {
    std::vector<std::string> all;
    (all.insert(all.end(), expected.events.begin(), expected.events.end()), ...);
    bench_.expect_events(all);
    return *this;
  }

  /// It recorded nothing, and no handler threw.
  ProcessScenario& then_nothing() { return then(); }

  /// A handler threw an exception whose text contains `message`.
  ProcessScenario& then_fails(std::string_view message) {
    bench_.expect_failure(message);
    return *this;
  }

  /// Exactly these timers are set, in order of due time. A timer is shown as "booking-7: not_paid
  /// v1 {…} at 2026-01-01T00:15:00.000000Z".
  ProcessScenario& then_timers(const std::vector<std::string>& expected) {
    bench_.expect_timers(expected);
    return *this;
  }

  /// The store that everything is recorded in, for a test's own expectations.
  Store& store() noexcept { return bench_.store; }
  /// Moved only by `after` or the test.
  ManualClock& clock() noexcept { return bench_.clock; }

 private:
  detail::ProcessBench bench_;
};

}  // namespace stela::testing
