// stela: two events of this set have one name (or former name)
#include "../domain.hpp"

struct PlacedAgain {
  static constexpr stela::EventType event_type{"order.placed"};
};
static_assert(use<stela::EventSet<Placed, PlacedAgain>>() == 2);
