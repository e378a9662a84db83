// stela: a timer's name is 1 to 128 characters
#include "../domain.hpp"

struct Late {
  static constexpr stela::TimerType timer_type{"too late", 1};
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
