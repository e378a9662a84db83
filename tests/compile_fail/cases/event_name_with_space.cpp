// stela: an event's name is 1 to 128 characters: words of letters, digits, '_' and '-', separated
// by dots
#include "../domain.hpp"

struct Badly {
  static constexpr stela::EventType event_type{"order placed"};
};
static_assert(use<stela::EventSet<Badly>>() == 1);
