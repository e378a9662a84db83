// stela: a timer of version 2 or more names the struct
#include "../domain.hpp"

struct Late {
  static constexpr stela::TimerType timer_type{"late", 2};
};
class Deadline {
 public:
  static constexpr stela::ProcessType process_type{"deadline"};
  using Events = stela::EventSet<Placed>;
  using Timers = stela::TimerSet<Late>;
  void react(stela::Process&, const stela::Recorded<Placed>&) {}
  void due(stela::Process&, const Late&) {}
};
void add(stela::Projections& projections) {
  projections.add_process(Deadline{});
}
