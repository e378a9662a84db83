// stela: an event that is still recorded as the version before declares the same tags as that
#include "../domain.hpp"

struct First {
  static constexpr stela::EventType event_type{"room.counted", 1};
  stela::Id<Room> room;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room));
  }
};
struct Second {
  static constexpr stela::EventType event_type{"room.counted", 2};
  using Supersedes = First;
  static Second upcast(First old) { return {old.room}; }
  static First record_as(const Second& event) { return {event.room}; }
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Second::room);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room));
  }
};
static_assert(use<stela::EventSet<Second>>() == 1);
