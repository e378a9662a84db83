// stela: a projector that rolls out takes an older version of itself, of the same name
#include "../domain.hpp"

template <int version>
class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", version};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
void add(stela::Projections& projections) {
  projections.add_inline_rolling(Orders<1>{}, Orders<2>{});
}
