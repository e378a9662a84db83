// stela: an event can't hold a long double; its bytes differ between machines
#include "../domain.hpp"

static_assert(use<stela::EventSet<Holding<long double>>>() == 1);
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<long double>{});
}
