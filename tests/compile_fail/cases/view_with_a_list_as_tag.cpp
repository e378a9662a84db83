// stela: a tag of a view is one id; for several, decide with a std::vector of views
#include "../domain.hpp"

#include <vector>

struct Many {
  using Events = stela::EventSet<Booked>;
  std::vector<stela::Id<Room>> rooms;
  static constexpr auto tags = stela::tags(&Many::rooms);
  void apply(const Booked&) {}
};
static_assert(stela::detail::check_view<Many>());
