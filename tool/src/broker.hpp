// The configured broker and relay.
#pragma once

#include "cli/settings.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/relay.hpp>

namespace stela::tool {

/// UsageError if settings contradict each other.
nats::PublisherOptions broker_options(const Settings& settings, Fence fence,
                                      const Partitioner& partitioner);
RelayOptions relay_options(const Settings& settings);

}  // namespace stela::tool
