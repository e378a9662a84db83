// A domain whose events say what their decision saw, so that a checker can tell whether it was
// right.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>
#include <string>
#include <tuple>

namespace stela::test {

struct Room {
  static constexpr std::string_view category = "room";
};
struct Guest {
  static constexpr std::string_view category = "guest";
};

struct Booked {
  static constexpr EventType event_type{"room.booked", 1, local};
  Id<Room> room;
  Id<Guest> guest;
  std::int64_t seen_in_room = 0;
  std::int64_t seen_of_guest = 0;
  static constexpr auto tags = stela::tags(&Booked::room, &Booked::guest);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room), CEREAL_NVP(guest), CEREAL_NVP(seen_in_room),
            CEREAL_NVP(seen_of_guest));
  }
};

struct Left {
  static constexpr EventType event_type{"room.left", 1, local};
  Id<Room> room;
  Id<Guest> guest;
  std::int64_t seen_in_room = 0;
  std::int64_t seen_of_guest = 0;
  static constexpr auto tags = stela::tags(&Left::room, &Left::guest);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room), CEREAL_NVP(guest), CEREAL_NVP(seen_in_room),
            CEREAL_NVP(seen_of_guest));
  }
};

inline constexpr std::int64_t beds = 3;
inline constexpr std::int64_t most_rooms = 2;

struct InRoom {
  using Events = EventSet<Booked, Left>;
  Id<Room> room;
  static constexpr auto tags = stela::tags(&InRoom::room);
  std::int64_t guests = 0;
  void apply(const Booked&) { ++guests; }
  void apply(const Left&) { --guests; }
};
struct OfGuest {
  using Events = EventSet<Booked, Left>;
  Id<Guest> guest;
  static constexpr auto tags = stela::tags(&OfGuest::guest);
  std::int64_t rooms = 0;
  void apply(const Booked&) { ++rooms; }
  void apply(const Left&) { --rooms; }
};
struct Stay {
  using Events = EventSet<Booked, Left>;
  Id<Room> room;
  Id<Guest> guest;
  static constexpr auto tags = stela::tags(&Stay::room, &Stay::guest);
  bool stays = false;
  void apply(const Booked&) { stays = true; }
  void apply(const Left&) { stays = false; }
};

/// Books the room if there is a bed and the guest may, or leaves it.
struct Move {
  Id<Room> room;
  Id<Guest> guest;

  auto views() const { return std::tuple{InRoom{room}, OfGuest{guest}, Stay{room, guest}}; }
  void operator()(Decision& decision, const InRoom& in_room, const OfGuest& of_guest,
                  const Stay& stay) const {
    if (stay.stays) {
      decision.record(Left{room, guest, in_room.guests, of_guest.rooms});
    } else if (in_room.guests < beds && of_guest.rooms < most_rooms) {
      decision.record(Booked{room, guest, in_room.guests, of_guest.rooms});
    }
  }
};

}  // namespace stela::test
