// stela: an event supersedes a struct of its own name, or of one that it lists in former_names
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"order.tallied", 1};
};
struct Second {
  static constexpr stela::EventType event_type{"order.counted", 2};
  static constexpr auto former_names = stela::names("order.totted_up");
  using Supersedes = First;
  static Second upcast(First) { return {}; }
};
static_assert(use<stela::EventSet<Second>>() == 1);
