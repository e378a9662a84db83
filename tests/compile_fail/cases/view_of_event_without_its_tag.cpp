// stela: one of the view's events doesn't carry the view's tags; declare them in the event that
#include "../domain.hpp"

struct Cleaned {
  static constexpr stela::EventType event_type{"room.cleaned"};
};
struct Dirt {
  using Events = stela::EventSet<Booked, Cleaned>;
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Dirt::room);
  void apply(const Booked&) {}
  void apply(const Cleaned&) {}
};
void decide(stela::EventLog& log) {
  stela::decide(log, Dirt{}, [](stela::Decision&, const Dirt&) {});
}
