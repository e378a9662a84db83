// stela: an event's version counts from 1
#include "../domain.hpp"

struct Early {
  static constexpr stela::EventType event_type{"order.early", 0};
};
static_assert(use<stela::EventSet<Early>>() == 1);
