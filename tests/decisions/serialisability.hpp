// An independent check: was every decision right at its place in the total order?
#pragma once

#include "decisions/bookings.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace stela::test {

/// Goes through all events in their order, without queries, views or tags, and compares what each
/// decision saw with what was so then. Empty, or the first contradiction.
class SerialisabilityChecker {
 public:
  std::string check(EventStore& store) {
    for (const StoredEvent& event : store.read_all()) {
      std::string problem;
      if (event.sequence.value() != ++last_) problem = "there is a gap before it";
      if (event.type() == "room.booked") problem += look(event, decode<Booked>(store, event), +1);
      if (event.type() == "room.left") problem += look(event, decode<Left>(store, event), -1);
      if (!problem.empty()) return event.describe() + ": " + problem;
    }
    return {};
  }
  std::int64_t events() const noexcept { return last_; }

 private:
  template <class E>
  static E decode(EventStore& store, const StoredEvent& event) {
    return codec::decode<E>(store.conventions().codec, event.payload);
  }

  template <class E>
  std::string look(const StoredEvent& event, const E& decided, std::int64_t change) {
    const std::string room = decided.room.key();
    const std::string guest = decided.guest.key();
    std::string problem;
    if (event.stream.name() != "room-" + room) problem += "it is in another stream; ";
    if (decided.seen_in_room != in_room_[room]) {
      problem += "its decision saw " + std::to_string(decided.seen_in_room) +
                 " guests in the room, and there were " + std::to_string(in_room_[room]) + "; ";
    }
    if (decided.seen_of_guest != of_guest_[guest]) {
      problem += "its decision saw " + std::to_string(decided.seen_of_guest) +
                 " rooms of the guest, and there were " + std::to_string(of_guest_[guest]) + "; ";
    }
    const bool stayed = stays_.contains({room, guest});
    if (stayed != (change < 0)) problem += "the guest was in that room, or not, before; ";
    if (change > 0) {
      stays_.insert({room, guest});
    } else {
      stays_.erase({room, guest});
    }
    in_room_[room] += change;
    of_guest_[guest] += change;
    if (in_room_[room] > beds || of_guest_[guest] > most_rooms) problem += "a limit is broken";
    return problem;
  }

  std::int64_t last_ = 0;
  std::map<std::string, std::int64_t> in_room_;
  std::map<std::string, std::int64_t> of_guest_;
  std::set<std::pair<std::string, std::string>> stays_;
};

}  // namespace stela::test
