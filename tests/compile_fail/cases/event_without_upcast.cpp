// stela: an event that supersedes another needs `static E upcast(Old old)`
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"order.counted", 1};
};
struct Second {
  static constexpr stela::EventType event_type{"order.counted", 2};
  using Supersedes = First;
};
static_assert(use<stela::EventSet<Second>>() == 1);
