// Tests of a reaction: given events, when one more happens, then further events are recorded.
#pragma once

#include <stela/framework/context.hpp>
#include <stela/projections/reaction.hpp>
#include <stela/projections_testing/export.hpp>
#include <stela/projections_testing/history.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_store.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::testing {

/// Expected events of a stream: `on("stock-shelf", Refused{"1"})`.
struct ExpectedEvents {
  std::vector<std::string> events = {};
};
template <class... Es>
ExpectedEvents on(const Stream& stream, const Es&... events) {
  ExpectedEvents expected;
  const auto add = [&](const auto& event) {
    expected.events.push_back(detail::render_on(stream, event));
  };
  (detail::for_each_event(events, add), ...);
  return expected;
}

/// The outcome of a reaction. Expectations can be chained.
class STELA_PROJECTIONS_TESTING_EXPORT ReactionOutcome {
 public:
  ReactionOutcome(std::vector<std::string> recorded, std::exception_ptr error)
      : recorded_{std::move(recorded)}, error_{std::move(error)} {}

  /// Exactly these events were recorded, in this order, and nothing was thrown.
  template <class... Expected>
  ReactionOutcome& then(const Expected&... expected) {
    std::vector<std::string> all;
    (all.insert(all.end(), expected.events.begin(), expected.events.end()), ...);
    expect_events(all);
    return *this;
  }

  /// Nothing was recorded, and nothing was thrown.
  ReactionOutcome& then_nothing() { return then(); }

  /// An `X` was thrown; with `message`, one whose text contains it.
  template <class X>
  ReactionOutcome& throws(std::string_view message = {}) {
    detail::expect_thrown<X>(error_, message);
    return *this;
  }

 private:
  void expect_events(const std::vector<std::string>& expected) const;

  std::vector<std::string> recorded_;
  std::exception_ptr error_;
};

namespace detail {

/// Passes the stored event to `react`, in the context and transaction that a runner provides.
STELA_PROJECTIONS_TESTING_EXPORT ReactionOutcome
run_reaction(MemoryStore& store, GlobalSequence event,
             const std::function<void(UnitOfWork&, const StoredEvent&)>& react);

}  // namespace detail

/// A reaction and the aggregates that it works on, in memory.
///
///     stela::testing::ReactionScenario{Fulfilment{}}
///         .given("stock-shelf", Reserved{})
///         .when("order-2", Placed{})
///         .then(stela::testing::on("stock-shelf", Refused{"2"}));
///
/// Threads: one at a time.
template <Reaction R>
class ReactionScenario {
 public:
  explicit ReactionScenario(R reaction) : reaction_{std::move(reaction)} {}

  /// Appends earlier events of one stream, which the reaction doesn't see.
  template <class... Es>
  ReactionScenario& given(const Stream& stream, const Es&... events) {
    detail::append(store_, stream, events...);
    return *this;
  }

  /// Lets time pass before the next events.
  ReactionScenario& after(std::chrono::microseconds time) {
    clock_.advance(time);
    return *this;
  }

  /// Gives this event to the reaction, but not the events that it records itself.
  template <class E>
  ReactionOutcome when(const Stream& stream, const E& event) {
    static_assert(R::Events::template contains<E>,
                  "stela: when() names an event that isn't in the reaction's event set");
    const GlobalSequence last = detail::append(store_, stream, event).last;
    return detail::run_reaction(store_, last, [&](UnitOfWork& unit, const StoredEvent& stored) {
      reaction_.react(unit, Recorded<E>{event, stored});
    });
  }

  /// The store that everything is recorded in, for a test's own expectations.
  MemoryStore& store() noexcept { return store_; }
  /// The time at which events are recorded, moved only by `after` or the test.
  ManualClock& clock() noexcept { return clock_; }

 private:
  R reaction_;
  ManualClock clock_;
  MemoryStore store_{{.clock = &clock_}};
};

}  // namespace stela::testing
