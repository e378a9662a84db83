// stela: a tag is a member of the struct that declares it
// only that
#include "../domain.hpp"

struct Cancelled {
  static constexpr stela::EventType event_type{"room.cancelled"};
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Booked::room);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room));
  }
};
void record(stela::EventLog& log) {
  stela::decide(log, Bookings{},
                [](stela::Decision& decision, const Bookings&) { decision.record(Cancelled{}); });
}
