// stela: decide() takes the views, then a callable of a stela::Decision& and of each view, const
#include "../domain.hpp"

void decide(stela::EventLog& log) {
  stela::decide(log, Bookings{}, [](stela::Decision&, Bookings&) {});
}
