// stela: the projector has a catch-all `project`
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const auto&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
