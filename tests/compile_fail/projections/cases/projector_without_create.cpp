// stela: a projector makes its tables in `void create(stela::ReadModel&)`
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  using Events = ::Events;
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
