// stela: two events of this catalogue have one name (or former name)
#include "../domain.hpp"

struct Sent {
  static constexpr stela::EventType event_type{"order.shipped"};
};
const auto all = stela::Catalogue<Events, stela::EventSet<Sent>>::describe();
