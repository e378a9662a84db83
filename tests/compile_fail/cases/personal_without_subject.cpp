// stela: a struct with a personal field says whose it is:
#include "../domain.hpp"

#include <stela/framework/personal.hpp>

static_assert(use<stela::EventSet<Holding<stela::Personal<std::string>>>>() == 1);
