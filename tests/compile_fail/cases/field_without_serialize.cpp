// stela: an event or a snapshot holds a value that can't be stored
#include "../domain.hpp"

struct Money {
  int cents = 0;
};

void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<std::vector<Money>>{});
}
