// stela: an event can't hold a shared_ptr
#include "../domain.hpp"

#include <cereal/types/memory.hpp>

struct Shared {
  static constexpr stela::EventType event_type{"order.shared"};
  std::shared_ptr<int> number;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number));
  }
};
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Shared{});
}
