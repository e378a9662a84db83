// stela: the first tag of an event names its stream, so it must be one id
#include "../domain.hpp"

#include <vector>

struct Swapped {
  static constexpr stela::EventType event_type{"room.swapped"};
  std::vector<stela::Id<Room>> rooms;
  static constexpr auto tags = stela::tags(&Swapped::rooms);
  template <class Archive>
  void serialize(Archive&) {}
};
void record(stela::Decision& decision) {
  decision.record(Swapped{});
}
