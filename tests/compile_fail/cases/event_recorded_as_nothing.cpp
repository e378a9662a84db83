// stela: `record_as` makes the version before of an event; one of version 1 has none
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"order.counted", 1};
  static First record_as(const First& event) { return event; }
};
static_assert(use<stela::EventSet<First>>() == 1);
