// stela: the projector has no handler for one of its events
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
