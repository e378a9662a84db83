// stela: an event needs a cereal `serialize` for all of its fields
#include "../domain.hpp"

struct Mute {
  static constexpr stela::EventType event_type{"order.mute"};
  int number = 0;
};
static_assert(use<stela::EventSet<Mute>>() == 1);
