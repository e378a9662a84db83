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
#include <variant>
#include <vector>

namespace stela::testing {

/// A failed expectation. `what()` shows both sides. Every test framework reports it.
class STELA_TESTING_EXPORT ScenarioFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

/// "order.placed v1 {…}": events are compared and shown in this form.
template <class E>
std::string render(const E& event) {
  std::string text{E::event_type.name};
  text += " v" + std::to_string(E::event_type.version) + ' ';
  codec::Sealing clear{.show = codec::Sealing::Show::clear};
  codec::encode(Codec::json, event, text, &clear);
  return text;
}

/// The struct that an `E` is stored as: during a roll-out, that of an earlier version.
template <class E>
struct StoredAs {
  using Type = E;
};
template <stela::detail::RecordedAsBefore E>
struct StoredAs<E> : StoredAs<typename E::Supersedes> {};

/// The text of the event in its stored form.
template <class E>
std::string render_as_stored(const E& event) {
  if constexpr (stela::detail::RecordedAsBefore<E>) {
    return render_as_stored(E::record_as(event));
  } else {
    return render(event);
  }
}

/// Calls `f` with each event of `events`: one event, a variant of several, or a list of either.
template <class Event, class F>
void for_each_event(const Event& event, F&& f) {
  f(event);
}
template <class... Es, class F>
void for_each_event(const std::variant<Es...>& event, F&& f) {
  std::visit(f, event);
}
template <class Event, class F>
void for_each_event(const std::vector<Event>& events, F&& f) {
  for (const Event& one : events) for_each_event(one, f);
}

/// True if everything that `T` can hold is an event of the set.
template <class Events, class T>
inline constexpr bool stands_for_events_of = Events::template contains<T>;
template <class Events, class... Es>
inline constexpr bool stands_for_events_of<Events, std::variant<Es...>> =
    (... && Events::template contains<Es>);
template <class Events, class T>
inline constexpr bool stands_for_events_of<Events, std::vector<T>> =
    stands_for_events_of<Events, T>;

STELA_TESTING_EXPORT void compare_events(const std::vector<std::string>& expected,
                                         const std::vector<std::string>& actual);
STELA_TESTING_EXPORT void compare_states(const std::string& expected, const std::string& actual);
[[noreturn]] STELA_TESTING_EXPORT void fail(const std::string& message);
STELA_TESTING_EXPORT std::string describe(std::exception_ptr error);

/// An `X` was thrown whose text contains `message`.
template <class X>
void expect_thrown(const std::exception_ptr& error, std::string_view message) {
  if (!error) fail("expected an exception, but nothing was thrown");
  try {
    std::rethrow_exception(error);
  } catch (const X& thrown) {
    if constexpr (std::derived_from<X, std::exception>) {
      if (std::string_view{thrown.what()}.find(message) == std::string_view::npos) {
        fail("expected an exception that says '" + std::string{message} + "', got '" +
             thrown.what() + "'");
      }
    }
  } catch (...) {
    fail("expected another exception than " + describe(error));
  }
}

}  // namespace detail

/// The result of `when`. Each expectation returns it again, so that they can be chained.
template <class A>
class Outcome {
 public:
  Outcome(std::optional<A> aggregate, std::exception_ptr error)
      : aggregate_{std::move(aggregate)}, error_{std::move(error)} {
    if (aggregate_) changes_.assign(aggregate_->changes().begin(), aggregate_->changes().end());
  }

  /// Exactly these events were recorded, in this order, and nothing was thrown.
  template <class... Es>
  Outcome& then(const Es&... events) {
    static_assert((... && A::EventsType::template contains<Es>),
                  "stela: then() names an event that isn't in the aggregate's event set");
    std::vector<std::string> actual;
    expect_no_error();
    detail::for_each_event(changes_, [&](const auto& e) { actual.push_back(detail::render(e)); });
    detail::compare_events({detail::render(events)...}, actual);
    return *this;
  }

  /// Nothing was recorded, and nothing was thrown.
  Outcome& then_nothing() { return then(); }

  /// An `X` was thrown; if `message` is given, its text contains that.
  template <class X>
  Outcome& throws(std::string_view message = {}) {
    detail::expect_thrown<X>(error_, message);
    return *this;
  }

  /// The state satisfies `check(const State&)`, which returns true, or returns nothing and throws.
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

  /// The state equals `expected`: by ==, or if there is none by its serialisation.
  Outcome& then_state(const typename A::StateType& expected) {
    using State = typename A::StateType;
    expect_no_error();
    if constexpr (codec::Serializable<State>) {
      std::string wanted;
      std::string actual;
      codec::Sealing clear{.show = codec::Sealing::Show::clear};
      codec::encode(Codec::json, expected, wanted, &clear);
      codec::encode(Codec::json, aggregate_->state(), actual, &clear);
      detail::compare_states(wanted, actual);
    } else {
      static_assert(std::equality_comparable<State>,
                    "stela: then_state(State) needs a state with operator== or `serialize`");
      if (!(aggregate_->state() == expected)) detail::fail("the state isn't as expected");
    }
    return *this;
  }

  /// The recorded events, for your own expectations. ScenarioFailed if something was thrown.
  std::vector<typename A::Change> recorded() const {
    expect_no_error();
    return changes_;
  }

  /// The recorded event of this type. ScenarioFailed unless there is exactly one.
  template <class E>
  E recorded() const {
    static_assert(A::EventsType::template contains<E>,
                  "stela: recorded() names an event that isn't in the aggregate's event set");
    expect_no_error();
    const E* found = nullptr;
    int count = 0;
    for (const auto& change : changes_) {
      if (const E* const event = std::get_if<E>(&change)) found = event, ++count;
    }
    if (count == 1) return *found;
    detail::fail("expected one event '" + std::string{E::event_type.name} + "', but " +
                 std::to_string(count) + " were recorded");
  }

  /// The aggregate afterwards. ScenarioFailed if something was thrown.
  A aggregate() const {
    expect_no_error();
    return *aggregate_;
  }

 private:
  void expect_no_error() const {
    if (error_) detail::fail("expected no exception, got " + detail::describe(error_));
  }

  std::optional<A> aggregate_;
  std::exception_ptr error_;
  std::vector<typename A::Change> changes_;
};

/// An aggregate with a history.
template <class A>
class Scenario {
 public:
  template <class... Es>
  explicit Scenario(const Es&... events) : aggregate_{StreamId::of(A::category, "test")} {
    static_assert((... && detail::stands_for_events_of<typename A::EventsType, Es>),
                  "stela: given() names an event that isn't in the aggregate's event set");
    (detail::for_each_event(events, [this](const auto& event) { apply(event); }), ...);
  }

  /// Runs `call` with the aggregate. Without a history `call` may be a factory without parameters,
  /// whose result is the aggregate.
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
/// }).then(OrderShipped{…})`. A history made at run time is a `std::vector<Order::Change>`, or a
/// vector of one event type.
template <class A, class... Es>
Scenario<A> given(const Es&... events) {
  return Scenario<A>{events...};
}

}  // namespace stela::testing
