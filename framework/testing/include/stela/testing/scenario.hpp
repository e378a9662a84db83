// Given, when, then: tests of an aggregate without a store.
#pragma once

#include <stela/framework/aggregate_root.hpp>
#include <stela/framework/codec/codec.hpp>
#include <stela/testing/export.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::testing {

/// An expectation that doesn't hold. `what()` shows both sides; every test framework reports it.
class STELA_TESTING_EXPORT ScenarioFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

/// "order.placed v1 {…}": how events are compared and shown.
template <class E>
std::string render(const E& event) {
  std::string text{E::event_type.name};
  text += " v" + std::to_string(E::event_type.version) + ' ';
  codec::encode(Codec::json, event, text);
  return text;
}

STELA_TESTING_EXPORT void compare_events(const std::vector<std::string>& expected,
                                         const std::vector<std::string>& actual);
STELA_TESTING_EXPORT void compare_states(const std::string& expected, const std::string& actual);
[[noreturn]] STELA_TESTING_EXPORT void fail(const std::string& message);
STELA_TESTING_EXPORT std::string describe(std::exception_ptr error);

}  // namespace detail

/// What came of `when`. Each expectation returns the outcome again, so that they can be chained.
template <class A>
class Outcome {
 public:
  Outcome(std::optional<A> aggregate, std::exception_ptr error)
      : aggregate_{std::move(aggregate)}, error_{std::move(error)} {
    if (!aggregate_) return;
    for (const auto& change : aggregate_->changes()) {
      std::visit([&](const auto& event) { recorded_.push_back(detail::render(event)); }, change);
    }
  }

  /// Exactly these events were recorded, in this order, and nothing was thrown.
  template <class... Es>
  Outcome& then(const Es&... events) {
    static_assert((... && A::EventsType::template contains<Es>),
                  "stela: then() names an event that isn't in the aggregate's event set");
    expect_no_error();
    detail::compare_events({detail::render(events)...}, recorded_);
    return *this;
  }

  /// Nothing was recorded, and nothing was thrown.
  Outcome& then_nothing() { return then(); }

  /// An `X` was thrown; with `message`, one whose text contains it.
  template <class X>
  Outcome& throws(std::string_view message = {}) {
    if (!error_) detail::fail("expected an exception, but nothing was thrown");
    try {
      std::rethrow_exception(error_);
    } catch (const X& thrown) {
      if constexpr (std::derived_from<X, std::exception>) {
        if (std::string_view{thrown.what()}.find(message) == std::string_view::npos) {
          detail::fail("expected an exception that says '" + std::string{message} + "', got '" +
                       thrown.what() + "'");
        }
      }
    } catch (...) {
      detail::fail("expected another exception than " + detail::describe(error_));
    }
    return *this;
  }

  /// The state satisfies `check(const State&)`, which returns true, or nothing and throws.
  template <class Check>
  requires std::invocable<Check, const typename A::StateType&> Outcome& then_state(Check&& check) {
    expect_no_error();
    if constexpr (std::same_as<std::invoke_result_t<Check, const typename A::StateType&>, bool>) {
      if (!check(aggregate_->state())) detail::fail("the state isn't as expected");
    } else {
      check(aggregate_->state());
    }
    return *this;
  }

  /// The state equals `expected`: by ==, or else by its serialisation.
  Outcome& then_state(const typename A::StateType& expected) {
    using State = typename A::StateType;
    expect_no_error();
    if constexpr (codec::Serializable<State>) {
      std::string wanted;
      std::string actual;
      codec::encode(Codec::json, expected, wanted);
      codec::encode(Codec::json, aggregate_->state(), actual);
      detail::compare_states(wanted, actual);
    } else {
      static_assert(std::equality_comparable<State>,
                    "stela: then_state(State) needs a state with operator== or `serialize`");
      if (!(aggregate_->state() == expected)) detail::fail("the state isn't as expected");
    }
    return *this;
  }

 private:
  void expect_no_error() const {
    if (error_) detail::fail("expected no exception, got " + detail::describe(error_));
  }

  std::optional<A> aggregate_;
  std::exception_ptr error_;
  std::vector<std::string> recorded_;
};

/// An aggregate with a history.
template <class A>
class Scenario {
 public:
  template <class... Es>
  explicit Scenario(const Es&... events) : aggregate_{StreamId::of(A::category, "test")} {
    static_assert((... && A::EventsType::template contains<Es>),
                  "stela: given() names an event that isn't in the aggregate's event set");
    (apply(events), ...);
  }

  /// Runs `call` with the aggregate, or, for a factory, without: then what it returns counts.
  template <class Call>
  Outcome<A> when(Call&& call) {
    static_assert(std::invocable<Call, A&> || std::invocable<Call>,
                  "stela: when() takes a callable of the aggregate, or one that makes it");
    try {
      if constexpr (std::invocable<Call, A&>) {
        std::invoke(std::forward<Call>(call), aggregate_);
        return Outcome<A>{aggregate_, nullptr};
      } else {
        return Outcome<A>{std::invoke(std::forward<Call>(call)), nullptr};
      }
    } catch (...) {
      return Outcome<A>{std::nullopt, std::current_exception()};
    }
  }

 private:
  template <class E>
  void apply(const E& event) {
    stela::detail::AggregateAccess::apply(aggregate_, event, aggregate_.version().next());
  }

  A aggregate_;
};

/// `given<Order>(OrderPlaced{…}).when([](Order& order) { order.ship("dhl");
/// }).then(OrderShipped{…})`
template <class A, class... Es>
Scenario<A> given(const Es&... events) {
  return Scenario<A>{events...};
}

}  // namespace stela::testing
