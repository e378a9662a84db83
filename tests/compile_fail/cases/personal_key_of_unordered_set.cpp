// an unordered container can't hold personal values as its keys
#include "../domain.hpp"

#include <stela/framework/personal.hpp>

struct Guest {
  static constexpr std::string_view category = "guest";
};
using Name = stela::Personal<std::string>;
struct HashOfName {
  std::size_t operator()(const Name&) const { return 0; }
};
struct SameName {
  bool operator()(const Name&, const Name&) const { return false; }
};

struct Met {
  static constexpr stela::EventType event_type{"guest.met", 1, stela::local};
  stela::Id<Guest> guest;
  std::unordered_set<Name, HashOfName, SameName> names;
  static constexpr auto subject = &Met::guest;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(guest), CEREAL_NVP(names));
  }
};

void add(stela::UnitOfWork& unit, const stela::StreamId& stream) {
  unit.append(stream, stela::ExpectedVersion::any(), Met{});
}
