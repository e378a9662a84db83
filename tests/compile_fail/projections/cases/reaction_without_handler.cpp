// stela: the reaction has no handler for one of its events
#include "../domain.hpp"

class Ship {
 public:
  static constexpr stela::ReactionType reaction_type{"ship"};
  using Events = ::Events;
  void react(stela::UnitOfWork&, const stela::Recorded<Placed>&) {}
};
void add(stela::Projections& projections) {
  projections.add_reaction(Ship{});
}
