// stela: an optional can't hold another optional
#include "../domain.hpp"

#include <cereal/types/optional.hpp>

void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Holding<std::optional<std::optional<int>>>{});
}
