// include <cereal/types/...> if it is a standard type
#include "../domain.hpp"

#include <queue>

void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<std::queue<int>>{});
}
