// stela: a tag is an Id, an optional one, or a list of them; give another value a name
// only that
#include "../domain.hpp"

struct BookingsOfANumber {
  using Events = stela::EventSet<Booked>;
  int room;
  static constexpr auto tags = stela::tags(&BookingsOfANumber::room);
  void apply(const Booked&) {}
};
void decide_by_a_number(stela::EventLog& log) {
  stela::decide(log, BookingsOfANumber{}, [](stela::Decision&, const BookingsOfANumber&) {});
}
