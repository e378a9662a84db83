// stela: an event supersedes the struct of the version just before its own
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"order.counted", 1};
};
struct Third {
  static constexpr stela::EventType event_type{"order.counted", 3};
  using Supersedes = First;
  static Third upcast(First) { return {}; }
};
static_assert(use<stela::EventSet<Third>>() == 1);
