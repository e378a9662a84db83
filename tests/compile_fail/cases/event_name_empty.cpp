// stela: an event's name is 1 to 128 characters
#include "../domain.hpp"

struct Badly {
  static constexpr stela::EventType event_type{""};
};
static_assert(use<stela::EventSet<Badly>>() == 1);
