// stela: an event of version 2 or more names the struct of the version before
#include "../domain.hpp"

struct Second {
  static constexpr stela::EventType event_type{"order.second", 2};
};
static_assert(use<stela::EventSet<Second>>() == 1);
