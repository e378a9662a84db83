// stela: two timers of this set have one name
#include "../domain.hpp"

struct Late {
  static constexpr stela::TimerType timer_type{"late", 1};
};
struct Later {
  static constexpr stela::TimerType timer_type{"late", 1};
};
class Deadline {
 public:
  static constexpr stela::ProcessType process_type{"deadline"};
  using Events = stela::EventSet<Placed>;
  using Timers = stela::TimerSet<Late, Later>;
  void react(stela::Process&, const stela::Recorded<Placed>&) {}
  void due(stela::Process&, const Late&) {}
  void due(stela::Process&, const Later&) {}
};
void add(stela::Projections& projections) {
  projections.add_process(Deadline{});
}
