// stela: an event that is still recorded as the version before says how by `static Old
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"order.counted", 1};
};
struct Second {
  static constexpr stela::EventType event_type{"order.counted", 2};
  using Supersedes = First;
  static Second upcast(First) { return {}; }
  static Second record_as(const Second& event) { return event; }
};
static_assert(use<stela::EventSet<Second>>() == 1);
