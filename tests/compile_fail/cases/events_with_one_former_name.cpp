// stela: two events of this set have one name (or former name)
#include "../domain.hpp"

struct Created {
  static constexpr stela::EventType event_type{"order.created"};
  static constexpr auto former_names = stela::names("order.placed");
};
static_assert(use<stela::EventSet<Placed, Created>>() == 2);
