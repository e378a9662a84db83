// stela: the name of a tag is 1 to 64 characters of a-z, 0-9 and '_', the first a letter
#include "../domain.hpp"

struct Noted {
  static constexpr stela::EventType event_type{"room.noted"};
  std::string text;
  static constexpr auto tags = stela::tags(stela::tag<"E-Mail">(&Noted::text));
};
