// The broker and the relay as they are configured.
#pragma once

#include "cli/settings.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/relay_options.hpp>

namespace stela::tool {

/// UsageError if settings contradict each other.
nats::PublisherOptions broker_options(const Settings& settings, Fence fence,
                                      const Partitioner& partitioner);
RelayOptions relay_options(const Settings& settings);

/// A broker's URL as it was given; "***" for one that names no servers, of which nobody knows where
/// its password is.
std::string without_password_of_broker(const std::string& url);

}  // namespace stela::tool
