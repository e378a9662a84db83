// Projectors: plain classes that keep tables up to date with events.
#pragma once

#include <stela/framework/event_set.hpp>
#include <stela/projections/read_model.hpp>

#include <string_view>
#include <utility>

namespace stela {

/// Stands in every projector as `static constexpr stela::ProjectorType projector_type{"name", 1};`
struct ProjectorType {
  std::string_view name;
  int version = 1;
};

/// A projector without its type: what a runner drives.
class STELA_PROJECTIONS_EXPORT AnyProjector {
 public:
  virtual ~AnyProjector() = default;
  virtual ProjectorType type() const noexcept = 0;
  virtual void create(ReadModel& model) = 0;
  /// Ignores events that aren't in the projector's set.
  virtual void project(ReadModel& model, const StoredEvent& event, Codec codec) = 0;
};

namespace detail {

template <class P, class E>
consteval bool check_project() {
  static_assert(requires(P& projector, ReadModel& model, const Recorded<E>& event) {
    projector.project(model, event);
  }, "stela: a projector needs `void project(ReadModel&, const Recorded<E>&)` for each event of its set");
  return true;
}

template <class P>
class TypedProjector final : public AnyProjector {
 public:
  explicit TypedProjector(P projector) : projector_{std::move(projector)} {
    P::Events::for_each([]<class E>(std::type_identity<E>) {
      static_assert(check_project<P, E>());
    });
  }
  ProjectorType type() const noexcept override { return P::projector_type; }
  void create(ReadModel& model) override { projector_.create(model); }
  void project(ReadModel& model, const StoredEvent& event, Codec codec) override {
    EventDecoder<typename P::Events> decoder{codec};
    if (!decoder.knows(event.kind)) return;
    decoder.decode(event, [&]<class E>(const E& decoded) {
      projector_.project(model, Recorded<E>{decoded, event});
    });
  }

 private:
  P projector_;
};

}  // namespace detail
}  // namespace stela
