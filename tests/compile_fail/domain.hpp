// What the cases share: a domain without mistakes.
#pragma once

#include <stela/framework.hpp>
#include <stela/testing/scenario.hpp>

#include <string>
#include <string_view>

struct Placed {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer));
  }
};

struct Shipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::local};
};

/// An event with a field of some type.
template <class Field>
struct Holding {
  static constexpr stela::EventType event_type{"order.holding"};
  Field field{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(field));
  }
};

using Events = stela::EventSet<Placed, Shipped>;

struct State {
  int placed = 0;
  void apply(const Placed&) { ++placed; }
  void apply(const Shipped&) {}
};

/// Names a room.
struct Room {
  static constexpr std::string_view category = "room";
};
struct Booked {
  static constexpr stela::EventType event_type{"room.booked"};
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Booked::room);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room));
  }
};
struct Bookings {
  using Events = stela::EventSet<Booked>;
  stela::Id<Room> room;
  static constexpr auto tags = stela::tags(&Bookings::room);
  int count = 0;
  void apply(const Booked&) { ++count; }
};

/// Makes the compiler look at the set.
template <class Set>
constexpr std::size_t use() {
  return Set::size;
}
