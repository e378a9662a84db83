// stela: the process has no handler for one of its timers
#include "../domain.hpp"

struct Late {
  static constexpr stela::TimerType timer_type{"late", 1};
};
class Deadline {
 public:
  static constexpr stela::ProcessType process_type{"deadline"};
  using Events = stela::EventSet<Placed>;
  using Timers = stela::TimerSet<Late>;
  void react(stela::Process&, const stela::Recorded<Placed>&) {}
};
void add(stela::Projections& projections) {
  projections.add_process(Deadline{});
}
