// stela: the view can't apply one of its events; give it `void apply(const E&)`, or `void
#include "../domain.hpp"

struct Idle {
  using Events = stela::EventSet<Booked>;
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Idle::room);
};
static_assert(stela::detail::check_view<Idle>());
