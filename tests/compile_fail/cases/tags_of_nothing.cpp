// stela: stela::tags() needs at least one tag; leave `tags` out if there is none
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"room.noted"};
  static constexpr auto tags = stela::tags();
};
static_assert(use<stela::EventSet<Noted>>() == 1);
