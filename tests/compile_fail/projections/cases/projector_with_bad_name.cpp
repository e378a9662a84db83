// stela: a projector's name is 1 to 64 characters of a-z, 0-9 and _, the first a letter
#include "../domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"Order Totals", 1};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
}
