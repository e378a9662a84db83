// stela: a projector names the events that it handles
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
