// stela: a process is copied for each runner
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
  void due(stela::Process&, const Late&) {}
  std::unique_ptr<int> kept;
};
void add(stela::Projections& projections) {
  projections.add_process(Deadline{});
}
