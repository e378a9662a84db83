// stela: former_names lists other valid names that the event was stored under
#include "../domain.hpp"

struct Same {
  static constexpr stela::EventType event_type{"order.same"};
  static constexpr auto former_names = stela::names("order.same");
};
static_assert(use<stela::EventSet<Same>>() == 1);
