// stela: a tag is an Id, an optional one, or a list of them; give another value a name
// only that
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"room.noted"};
  std::string text;
  static constexpr auto tags = stela::tags(&Noted::text);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};
static_assert(use<stela::EventSet<Noted>>() == 1);
