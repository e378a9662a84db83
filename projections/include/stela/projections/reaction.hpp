// Reactions record further events in response to events. They are processes without timers.
#pragma once

#include <stela/framework/unit_of_work.hpp>
#include <stela/projections/process.hpp>
#include <stela/projections/projector.hpp>

#include <string_view>

namespace stela {

/// Every reaction has one: `static constexpr stela::ReactionType reaction_type{"name"};`. The name
/// never changes. It has the same form as a projector's.
struct ReactionType {
  std::string_view name;
};

namespace detail {

template <class R, class E>
consteval bool check_react() {
  static_assert(
      requires(R & reaction, UnitOfWork & unit, const Recorded<E>& event) {
        reaction.react(unit, event);
      },
      "stela: the reaction has no handler for one of its events; give it `void "
      "react(stela::UnitOfWork&, const stela::Recorded<E>&)` for the event that the lines around "
      "this one name");
  return true;
}

template <class R>
consteval bool check_reaction() {
  static_assert(
      requires {
        { R::reaction_type } -> std::convertible_to<const ReactionType&>;
      },
      "stela: a reaction is a class with `static constexpr stela::ReactionType "
      "reaction_type{\"some_name\"};`");
  static_assert(is_valid_projector_name(R::reaction_type.name),
                "stela: a reaction's name is 1 to 64 characters of a-z, 0-9 and _, the first a "
                "letter");
  static_assert(
      requires { requires is_event_set<typename R::Events>; },
      "stela: a reaction names the events that it handles: `using Events = stela::EventSet<…>;`");
  static_assert(
      !requires(R & reaction, UnitOfWork & unit, const Recorded<ForeignProjection>& event) {
        reaction.react(unit, event);
      },
      "stela: the reaction has a catch-all `react`, which would swallow events "
      "without a handler; write one `react` for each event");
  static_assert(std::copy_constructible<R>,
                "stela: a reaction is copied for each runner; keep what can't be copied behind a "
                "std::shared_ptr");
  R::Events::for_each([]<class E>(std::type_identity<E>) { static_assert(check_react<R, E>()); });
  return true;
}

template <class R>
class TypedReaction final : public AnyProcess {
 public:
  TypedReaction(const R& reaction, const Reading& reading)
      : reaction_{reaction}, filter_{reading} {}

  Handling handling(const EventKind& kind) override { return filter_.handling(kind); }
  void react(Process& process, const StoredEvent& event) override {
    filter_.decoder().decode(event, [&]<class E>(const E& decoded) {
      reaction_.react(process.unit(), Recorded<E>{decoded, event});
    });
  }

 private:
  R reaction_;
  KindFilter<typename R::Events> filter_;
};

}  // namespace detail

/// A class that can be registered as a reaction. The compiler names each broken rule.
template <class R>
concept Reaction = detail::check_reaction<R>();

}  // namespace stela
