// Descriptions of the options of publishers and consumers: names, ranges and meanings.
#pragma once

#include <stela/framework/settings.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/export.hpp>
#include <stela/nats/publisher.hpp>

#include <span>

namespace stela::nats {

STELA_NATS_EXPORT std::span<const Setting<PublisherOptions>> publisher_settings() noexcept;
STELA_NATS_EXPORT std::span<const Setting<ConsumerOptions>> consumer_settings() noexcept;

}  // namespace stela::nats
