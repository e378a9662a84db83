// The relay with a fault built into its core, to see that the check finds it.
#pragma once

#include "relay/core.hpp"

#include <stela/outbox/outbox.hpp>
#include <stela/outbox/publisher.hpp>
#include <stela/outbox/relay_options.hpp>

#include <stop_token>

namespace stela::chaos {

void run_mutant(Outbox& outbox, Publisher& publisher, RelayOptions options,
                relay::Mutation mutation, std::stop_token stop);

}  // namespace stela::chaos
