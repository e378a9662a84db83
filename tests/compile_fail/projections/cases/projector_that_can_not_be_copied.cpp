// stela: a projector is copied for each runner and each replay
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
  std::unique_ptr<int> kept;
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
