// stela: a view needs tags, by which its events are found: `static constexpr auto tags =
#include "../domain.hpp"

struct All {
  using Events = stela::EventSet<Booked>;
  void apply(const Booked&) {}
};
void decide(stela::EventLog& log) {
  stela::decide(log, All{}, [](stela::Decision&, const All&) {});
}
