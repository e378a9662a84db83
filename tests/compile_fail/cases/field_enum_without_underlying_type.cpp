// stela: an event can't hold an enum without an underlying type
#include "../domain.hpp"

enum Size { small, large };
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<Size>{});
}
