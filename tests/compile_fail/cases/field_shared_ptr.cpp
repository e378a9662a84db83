// stela: an event can't hold a shared_ptr
#include "../domain.hpp"

#include <cereal/types/memory.hpp>

void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<std::shared_ptr<int>>{});
}
