// The relay of a mutant, to see that the check finds it.
#pragma once

#include "mutants/mutant.hpp"

#include <stela/outbox/outbox.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <stop_token>

namespace stela::chaos {

void run_mutant(Outbox& outbox, Publisher& publisher, RelayOptions options, mutants::Mutant mutant,
                std::stop_token stop);

}  // namespace stela::chaos
