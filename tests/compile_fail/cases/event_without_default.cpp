// stela: an event must be default constructible and movable, to be read back
#include "../domain.hpp"

struct Needy {
  static constexpr stela::EventType event_type{"order.needy"};
  explicit Needy(int) {}
};
static_assert(use<stela::EventSet<Needy>>() == 1);
