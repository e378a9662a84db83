// stela: a projector is a class with `static constexpr stela::ProjectorType
#include "../domain.hpp"

class Orders {
 public:
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
