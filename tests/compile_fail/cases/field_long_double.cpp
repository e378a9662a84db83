// stela: an event can't hold a long double; its bytes differ between machines
#include "../domain.hpp"

struct Precise {
  static constexpr stela::EventType event_type{"order.precise"};
  long double number = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(number));
  }
};
static_assert(use<stela::EventSet<Precise>>() == 1);
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Precise{});
}
