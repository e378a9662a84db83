// stela: an event is a struct with `static constexpr stela::EventType event_type
#include "../domain.hpp"

static_assert(use<stela::EventSet<int>>() == 1);
