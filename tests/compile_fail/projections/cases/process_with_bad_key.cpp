// stela: `key` of a process returns the name of an instance
#include "../domain.hpp"

struct Late {
  static constexpr stela::TimerType timer_type{"late", 1};
};
class Deadline {
 public:
  static constexpr stela::ProcessType process_type{"deadline"};
  using Events = stela::EventSet<Placed>;
  using Timers = stela::TimerSet<Late>;
  int key(const stela::Recorded<Placed>&) { return 1; }
  void react(stela::Process&, const stela::Recorded<Placed>&) {}
  void due(stela::Process&, const Late&) {}
};
void add(stela::Projections& projections) {
  projections.add_process(Deadline{});
}
