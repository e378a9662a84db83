// stela: an event is a struct with `static constexpr stela::EventType event_type
#include "../domain.hpp"

struct Nameless {};
static_assert(use<stela::EventSet<Nameless>>() == 1);
