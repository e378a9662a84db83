// Descriptions of the options of outboxes and relays: names, ranges and meanings.
#pragma once

#include <stela/framework/settings.hpp>
#include <stela/outbox/export.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/outbox/relay.hpp>

#include <span>

namespace stela {

/// Includes the facts of the database.
STELA_OUTBOX_EXPORT std::span<const Setting<OutboxOptions>> outbox_settings() noexcept;
STELA_OUTBOX_EXPORT std::span<const Setting<RelayOptions>> relay_settings() noexcept;

}  // namespace stela
