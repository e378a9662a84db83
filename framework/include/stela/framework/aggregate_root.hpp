// Aggregates: record events, and are what their events say.
#pragma once

#include <stela/framework/context.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/snapshot_policy.hpp>
#include <stela/framework/stream_id.hpp>

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela {
namespace detail {

struct AggregateAccess;

/// No state means to apply this one; whoever accepts it accepts anything.
struct ForeignEvent {};

template <class State, class E>
consteval bool check_apply() {
  static_assert(
      requires(State state, const E& event) { state.apply(event); },
      "stela: the state can't apply one of its events; give it `void apply(const E&)` "
      "for the event that the lines around this one name");
  return true;
}

template <class State, class Events>
consteval bool check_state() {
  static_assert(std::is_default_constructible_v<State>,
                "stela: a state must be default constructible: it is what it is before any event");
  static_assert(
      !requires(State state, const ForeignEvent& event) { state.apply(event); },
      "stela: the state has a catch-all `apply`, which would swallow events that nobody "
      "handles; write one `apply` for each event");
  Events::for_each([]<class E>(std::type_identity<E>) { static_assert(check_apply<State, E>()); });
  return true;
}

[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_recording(const StreamId& stream, bool historical);

}  // namespace detail

/// Base of an aggregate: `class Order : public stela::AggregateRoot<OrderState, OrderEvents>`, with
/// `static constexpr std::string_view category = "order";` and `using
/// AggregateRoot::AggregateRoot;`. `record` is all that its methods do to change it. Threads: one
/// at a time.
template <class State, class Events>
class AggregateRoot {
 public:
  using StateType = State;
  using EventsType = Events;
  using Change = typename Events::Variant;

  /// An aggregate without history; `load` gives one with it.
  explicit AggregateRoot(StreamId stream) : stream_{std::move(stream)} {
    static_assert(detail::check_state<State, Events>());
  }

  const StreamId& stream() const noexcept { return stream_; }
  /// The version that is stored; what is recorded and not saved yet doesn't count.
  StreamVersion version() const noexcept { return version_; }
  const State& state() const noexcept { return state_; }
  /// What was recorded and not saved yet.
  const std::vector<Change>& changes() const noexcept { return changes_; }
  /// Loaded as of an earlier time: it can be looked at, not changed.
  bool is_historical() const noexcept { return historical_; }

 protected:
  /// Applies the event to the state and keeps it for `save`. UsageError inside a replay, and on a
  /// historical aggregate.
  template <class E>
  void record(E event) {
    static_assert(Events::template contains<E>,
                  "stela: the aggregate records an event that isn't in its event set; add it");
    if (historical_ || is_replaying()) detail::refuse_recording(stream_, historical_);
    state_.apply(std::as_const(event));
    changes_.emplace_back(std::in_place_type<E>, std::move(event));
  }

 private:
  friend struct detail::AggregateAccess;

  StreamId stream_;
  StreamVersion version_;
  State state_;
  std::vector<Change> changes_;
  bool historical_ = false;
};

/// A class that can be loaded and saved.
template <class A>
concept Aggregate = requires {
  typename A::StateType;
  typename A::EventsType;
  { A::category } -> std::convertible_to<std::string_view>;
}
&&std::derived_from<A, AggregateRoot<typename A::StateType, typename A::EventsType>>&&
    std::constructible_from<A, StreamId>;

/// The typed id of an aggregate.
template <Aggregate A>
Id<A> id_of(const A& aggregate) {
  return Id<A>::of(aggregate.stream());
}

namespace detail {

template <class A>
consteval bool check_aggregate() {
  static_assert(
      requires {
        { A::category } -> std::convertible_to<std::string_view>;
      },
      "stela: an aggregate needs `static constexpr std::string_view category`");
  static_assert(is_valid_category(A::category),
                "stela: a category is 1 to 64 characters of a-z, 0-9 and '_', the first a letter");
  static_assert(std::constructible_from<A, StreamId>,
                "stela: an aggregate must be constructible from its stream id; write `using "
                "AggregateRoot::AggregateRoot;`");
  return true;
}

/// How repositories and the test kit reach into an aggregate.
struct AggregateAccess {
  template <class A, class E>
  static void apply(A& aggregate, const E& event, StreamVersion version) {
    aggregate.state_.apply(event);
    aggregate.version_ = version;
  }
  template <class A>
  static void restore(A& aggregate, typename A::StateType state, StreamVersion version) {
    aggregate.state_ = std::move(state);
    aggregate.version_ = version;
  }
  template <class A>
  static void mark_saved(A& aggregate, StreamVersion version) noexcept {
    aggregate.changes_.clear();
    aggregate.version_ = version;
  }
  template <class A>
  static void mark_historical(A& aggregate) noexcept {
    aggregate.historical_ = true;
  }
};

}  // namespace detail
}  // namespace stela
