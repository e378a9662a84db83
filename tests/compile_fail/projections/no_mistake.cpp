// A projector and a reaction as they should be: what each case has one thing wrong of.
#include "domain.hpp"

class Orders {
 public:
  static constexpr stela::ProjectorType projector_type{"orders", 1};
  using Events = ::Events;
  void create(stela::ReadModel&) {}
  void project(stela::ReadModel&, const stela::Recorded<Placed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Shipped>&) {}
};
class Ship {
 public:
  static constexpr stela::ReactionType reaction_type{"ship"};
  using Events = stela::EventSet<Placed>;
  void react(stela::UnitOfWork&, const stela::Recorded<Placed>&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
  projections.add_inline(Orders{});
  projections.add_reaction(Ship{});
}
