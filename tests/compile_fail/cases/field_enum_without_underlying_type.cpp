// stela: an event can't hold an enum without an underlying type
#include "../domain.hpp"

enum Size { small, large };
struct Sized {
  static constexpr stela::EventType event_type{"order.sized"};
  Size size{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(size));
  }
};
void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Sized{});
}
