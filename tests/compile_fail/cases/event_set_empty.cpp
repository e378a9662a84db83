// stela: an event set needs at least one event
#include "../domain.hpp"

static_assert(use<stela::EventSet<>>() == 0);
