// A projector, a reaction and a process as they should be: what each case has one thing wrong of.
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
struct Late {
  static constexpr stela::TimerType timer_type{"late", 1};
};
class Deadline {
 public:
  static constexpr stela::ProcessType process_type{"deadline"};
  using Events = ::Events;
  using Timers = stela::TimerSet<Late>;
  std::string key(const stela::Recorded<Shipped>& e) { return e.stream().name(); }
  void react(stela::Process& process, const stela::Recorded<Placed>& e) {
    process.set(Late{}, e.recorded_at() + std::chrono::hours{1});
  }
  void react(stela::Process& process, const stela::Recorded<Shipped>&) { process.clear<Late>(); }
  void due(stela::Process&, const Late&) {}
};
void add(stela::Projections& projections) {
  projections.add(Orders{});
  projections.add_inline(Orders{});
  projections.add_reaction(Ship{});
  projections.add_process(Deadline{});
}
